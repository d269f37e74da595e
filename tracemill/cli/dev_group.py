"""`tracemill dev`: tools for trying recipes and testing without a provider."""

from pathlib import Path
from typing import Annotated

import typer

from tracemill.cli.options import ConfigArgument, Json, WorkspaceOption
from tracemill.cli.overrides import run_overrides

dev_app = typer.Typer(help="Try recipes, and test without a provider.", no_args_is_help=True)


@dev_app.command("openrouter-stub")
def openrouter_stub(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8787,
    key: Annotated[str, typer.Option(help="API key to accept.")] = "simulated-key",
    latency: Annotated[float, typer.Option(metavar="S", help="Median seconds per answer.")] = 0.0,
    latency_spread: Annotated[float, typer.Option(metavar="S", help="Sigma of the lognormal latency.")] = 0.0,
    credit_usd: Annotated[float, typer.Option(metavar="USD", help="Credit on the account.")] = 1000.0,
    in_flight_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="Maximum cost of calls in flight.")
    ] = None,
    cache_lifetime: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0, help="Seconds a prompt cache lives; 0 disables it.", show_default="by model"
        ),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=SHARE", help="Fault to inject, such as 429=0.1; repeatable."),
    ] = None,
    retry_after: Annotated[
        float, typer.Option(metavar="S", help="Retry-After of 429, 503 and 402-hold.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the simulated models.")] = 0,
) -> None:
    """Serve OpenRouter's API here with simulated answers."""
    from tracemill.flows.simulate_server import serve_until_interrupted

    given = {
        "api_key": key,
        "latency_s": latency,
        "latency_spread": latency_spread,
        "credit_usd": str(credit_usd),
        "in_flight_usd": None if in_flight_usd is None else str(in_flight_usd),
        "prompt_cache": cache_lifetime != 0,
        "cache_lifetime_s": cache_lifetime or None,
        "seed": seed,
    }
    serve_until_interrupted(host, port, given, fault or [], retry_after)


@dev_app.command()
def normalize(
    config: ConfigArgument = None,
    workspace: WorkspaceOption = None,
    recipe: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="data-juicer recipe (YAML).", show_default="of the configuration"),
    ] = None,
    json: Json = False,
) -> None:
    """Show what a recipe keeps and drops; write no release."""
    from tracemill.cli.commands import say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.run_state.stale_labels import stale_labels_text
    from tracemill.flows.workspace_commands import preview_release

    over = run_overrides(workspace)
    if recipe is not None:
        over["normalize"] = {"recipe": str(recipe)}
    record = preview_release(load_settings(config, over))
    rows = [
        (item["operator"], f"{item['rows_in']:,} in, {item['dropped']:,} dropped")
        for item in record["operators"]
    ]
    rows.append(("kept", f"{record['kept']:,}"))
    rows += [(f"split {name}", f"{count:,}") for name, count in record["splits"].items()]
    if newer := stale_labels_text(record["newer_answers"]):
        rows.append(("stale answers", newer))
    say(rows, f"tracemill dev normalize ({record['recipe']})", record, json)
