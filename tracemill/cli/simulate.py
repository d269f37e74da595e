"""`tracemill simulate-openrouter` on the command line."""

from typing import Annotated

import typer

Fault = Annotated[
    list[str] | None, typer.Option(help="KIND=SHARE, e.g. 429=0.1, or KIND=SHARE@MODEL; repeatable.")
]
InFlight = Annotated[
    float | None, typer.Option(help="Most that calls in flight may come to, in USD; more is 402.")
]
CacheLifetime = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds a prompt cache lives, in place of the family's; 0: none."),
]


def simulate_openrouter(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8787,
    key: Annotated[str, typer.Option(help="API key that is accepted.")] = "simulated-key",
    latency: Annotated[float, typer.Option(help="Seconds before an answer, in the median.")] = 0.0,
    latency_spread: Annotated[float, typer.Option(help="Sigma of a lognormal around it.")] = 0.0,
    credit_usd: Annotated[float, typer.Option(help="Credit on the account, in USD.")] = 1000.0,
    in_flight_usd: InFlight = None,
    cache_lifetime: CacheLifetime = None,
    fault: Fault = None,
    retry_after: Annotated[float, typer.Option(help="Seconds that 429, 503 and 402-hold ask for.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulated models.")] = 0,
) -> None:
    """A server on this machine that speaks OpenRouter's wire format; answers are simulated.

    It has prices, providers, prompt caches and an account, and fails as it is told to.
    """
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
