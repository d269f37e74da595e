"""Read the metadata of a SWE-agent run: instance, repository, model, version, tools offered."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.benchmark_ids import base_benchmark_id, benchmark_repository
from tracemill.ingesters.common.openai_messages import first_text

# Tools of each bundle, by the name of its folder, of versions 1.0 and 1.1.
_WINDOW = ("open", "goto", "scroll_up", "scroll_down", "create")
_BUNDLES: Mapping[str, tuple[str, ...]] = {
    "defaults": _WINDOW,
    "windowed": _WINDOW,
    "search": ("search_dir", "search_file", "find_file"),
    "edit_linting": ("edit",),
    "edit_rewrite": ("edit",),
    "edit_replace": ("edit", "insert"),
    "windowed_edit_linting": ("edit",),
    "windowed_edit_rewrite": ("edit",),
    "windowed_edit_replace": ("edit", "insert"),
    "edit_anthropic": ("str_replace_editor",),
    "filemap": ("filemap",),
    "submit": ("submit",),
    "review_on_submit": ("submit",),
    "review_on_submit_m": ("submit",),
    "forfeit": ("exit_forfeit",),
    "image_tools": ("view_image",),
}
_NO_MODEL = frozenset({"human", "human_thought", "replay", "instant_empty_submit", "unknown"})
_GITHUB = re.compile(r"github\.com[/:](?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?(?:/|$)")
# Folders of runs: `<model>__<data>__<config>__t-..__p-..__c-..__install-1` (0.x) and
# `<config>__<model>__t-..__p-..__c-..___<data>` (1.x).
_FOLDER_0 = re.compile(r"^(?P<model>.+?)__.+__t-[\d.]+__p-[\d.]+__c-[\d.]+__install-\d")
_FOLDER_1 = re.compile(r"(?:^|__)(?P<model>(?:(?!__).)+)__t-[\d.]+__p-[\d.]+__c-[\d.]+___")


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """Metadata of a run; `named` is the instance as the file itself names it."""

    named: str | None
    instance_id: str | None
    repository: str | None
    model: str | None
    version: str | None
    offered: tuple[str, ...]


def read_run_metadata(run: Mapping[str, Any], path: Path | None) -> RunMetadata:
    """Return the metadata of a run; `path` is its file, None for a row of a table.

    The name of the file is the instance where the run names none.
    """
    config, info = metadata_mapping(run.get("replay_config")), metadata_mapping(run.get("info"))
    problem, agent = metadata_mapping(config.get("problem_statement")), metadata_mapping(config.get("agent"))
    named = first_text(run.get("instance_id"), problem.get("id"))
    instance = base_benchmark_id(named or metadata_file_instance(path))
    urls = (
        metadata_mapping(metadata_mapping(config.get("env")).get("repo")).get("github_url"),
        problem.get("github_url"),
    )
    linked = (match for url in urls if (match := _GITHUB.search(first_text(url) or "")))
    repository = next((match.group("repository") for match in linked), None)
    return RunMetadata(
        named=named,
        instance_id=instance,
        repository=first_text(run.get("repo")) or benchmark_repository(instance) or repository,
        model=_model(run, info, agent, path),
        version=first_text(info.get("swe_agent_version")),
        offered=tuple(_offered(metadata_mapping(agent.get("tools")))),
    )


def metadata_mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, or the object in a JSON text; an empty mapping for any other value."""
    if isinstance(value, str) and value[:1] == "{":
        try:
            value = orjson.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _model(
    run: Mapping[str, Any], info: Mapping[str, Any], agent: Mapping[str, Any], path: Path | None
) -> str | None:
    """Return the model that answered; None if a person did, or where a run was replayed.

    A run that counts no token sent or received asked no model, though its configuration names one.
    """
    stats = metadata_mapping(info.get("model_stats"))
    if stats and not any(stats.get(key) for key in ("tokens_sent", "tokens_received", "instance_cost")):
        return None
    inner = metadata_mapping(agent.get("model"))
    named = [run.get("model"), run.get("model_name_or_path"), run.get("model_name")]
    named += [inner.get("name"), inner.get("model_name"), *_folder_models(path)]
    model = first_text(*named)
    return None if model in _NO_MODEL else model


def _folder_models(path: Path | None) -> Iterator[str]:
    for folder in (path.parent.name, path.parent.parent.name) if path else ():
        match = _FOLDER_0.match(folder) or _FOLDER_1.search(folder)
        if match:
            yield match.group("model").replace("--", "/")


def _offered(tools: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that a configuration offers, from its known bundles."""
    bundles = tools.get("bundles")
    if tools.get("enable_bash_tool"):
        yield "bash"
    for bundle in bundles if isinstance(bundles, Sequence) and not isinstance(bundles, str) else ():
        if isinstance(bundle, dict):
            name = Path(first_text(bundle.get("path")) or "").name
            hidden = bundle.get("hidden_tools")
            left_out = hidden if isinstance(hidden, list) else []
            yield from (tool for tool in _BUNDLES.get(name, ()) if tool not in left_out)


def metadata_file_instance(path: Path | None) -> str | None:
    """Return the instance a trajectory file is named after: `<instance>.traj`, `<instance>.traj.json`."""
    return path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".traj") if path else None
