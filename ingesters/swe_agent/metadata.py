"""What a SWE-agent run tells of itself: instance, repository, model, version, tools offered."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.benchmark_ids import base_benchmark_id, benchmark_repository

# What each bundle of tools offers a model, by the name of its folder; those of 1.0 and of 1.1.
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
class RunFacts:
    """What is known of a run as a whole. `named` is its instance as the file itself names it."""

    named: str | None
    instance_id: str | None
    repository: str | None
    model: str | None
    version: str | None
    offered: tuple[str, ...]


def read_run_metadata(run: Mapping[str, Any], path: Path | None) -> RunFacts:
    """The facts of a run. `path` is its file, None for a row of a table; its name is the instance where
    the file does not say."""
    config, info = metadata_mapping(run.get("replay_config")), metadata_mapping(run.get("info"))
    problem, agent = metadata_mapping(config.get("problem_statement")), metadata_mapping(config.get("agent"))
    named = _text(run.get("instance_id")) or _text(problem.get("id"))
    instance = base_benchmark_id(named or metadata_file_instance(path))
    urls = (
        metadata_mapping(metadata_mapping(config.get("env")).get("repo")).get("github_url"),
        problem.get("github_url"),
    )
    linked = (found for url in urls if (found := _GITHUB.search(_text(url) or "")))
    repository = next((found.group("repository") for found in linked), None)
    return RunFacts(
        named=named,
        instance_id=instance,
        repository=_text(run.get("repo")) or benchmark_repository(instance) or repository,
        model=_model(run, info, agent, path),
        version=_text(info.get("swe_agent_version")),
        offered=tuple(_offered(metadata_mapping(agent.get("tools")))),
    )


def metadata_mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, or JSON text of one; else an empty one."""
    if isinstance(value, str) and value[:1] == "{":
        try:
            value = orjson.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _model(
    run: Mapping[str, Any], info: Mapping[str, Any], agent: Mapping[str, Any], path: Path | None
) -> str | None:
    """The model that answered; None where a person did, or where a run was replayed.

    A run whose own count says that nothing was sent or received was answered by nobody: its
    configuration names a model that was never asked.
    """
    stats = metadata_mapping(info.get("model_stats"))
    if stats and not any(stats.get(key) for key in ("tokens_sent", "tokens_received", "instance_cost")):
        return None
    inner = metadata_mapping(agent.get("model"))
    named = [run.get("model"), run.get("model_name_or_path"), run.get("model_name")]
    named += [inner.get("name"), inner.get("model_name"), *_folder_models(path)]
    model = next((text for value in named if (text := _text(value))), None)
    return None if model in _NO_MODEL else model


def _folder_models(path: Path | None) -> Iterator[str]:
    for folder in (path.parent.name, path.parent.parent.name) if path else ():
        found = _FOLDER_0.match(folder) or _FOLDER_1.search(folder)
        if found:
            yield found.group("model").replace("--", "/")


def _offered(tools: Mapping[str, Any]) -> Iterator[str]:
    """The names of the tools that a configuration offers, as far as its bundles are known."""
    bundles = tools.get("bundles")
    if tools.get("enable_bash_tool"):
        yield "bash"
    for bundle in bundles if isinstance(bundles, Sequence) and not isinstance(bundles, str) else ():
        if isinstance(bundle, dict):
            name = Path(_text(bundle.get("path")) or "").name
            hidden = bundle.get("hidden_tools")
            left_out = hidden if isinstance(hidden, list) else []
            yield from (tool for tool in _BUNDLES.get(name, ()) if tool not in left_out)


def metadata_file_instance(path: Path | None) -> str | None:
    """The instance a trajectory file is named after: `<instance>.traj`, `<instance>.traj.json`."""
    return path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".traj") if path else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
