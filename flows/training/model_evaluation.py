"""Measure models: on the pairs that a release holds out, by operation and by source, and in worlds."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.training.resolve_release import resolve_training_release
from tracemill.records.errors import ConfigError, TrainingError
from tracemill.train.played_worlds import SOLVED, PlayedTasks, PlayRequest, play_world
from tracemill.train.preferences import (
    NO_PAIR,
    PreferenceMargins,
    PreferenceRequest,
    PreferenceSummary,
    held_out_files,
    measure_preferences,
    resample,
)
from tracemill.train.start_child import check_model_folder, check_packages, model_environment
from tracemill.train.training_settings import TrainingSettings

_READ = {"max_length", "context", "device", "chat_template", "environment"}
"""Keys of `[training]` that change what is measured."""


@dataclass(frozen=True, slots=True)
class PlaySettings:
    """Tasks `first` to `first + tasks - 1` of the world `module:class`, and sampling settings of models."""

    world: str
    first: int = 0
    tasks: int = 100
    temperature: float = 0.0
    turns: int = 16
    new_tokens: int = 256

    @classmethod
    def of(cls, world: str, tasks: str, temperature: float, turns: int, new_tokens: int) -> "PlaySettings":
        """Parse `FIRST:END` as a range of tasks. Raises ConfigError if it is invalid."""
        first, _, end = tasks.partition(":")
        if not (first.isdecimal() and end.isdecimal() and int(first) < int(end)):
            raise ConfigError(f"--tasks {tasks!r} is no range of tasks", "FIRST:END, as in 0:100")
        return cls(world, int(first), int(end) - int(first), temperature, turns, new_tokens)


def evaluate_models(
    settings: RunSettings, models: Sequence[str], asked: str | None, play: PlaySettings | None = None
) -> dict[str, Any]:
    """Return how each model ranks the held-out pairs of the release `asked` names, by default the newest.

    The first model decides which pairs fit, and the others are compared with it on the same pairs. With
    `play` also the share of tasks that each solves; pairs are then measured only where `asked` is given.

    Raises:
        ConfigError: A model is given twice.
        TrainingError: A model or the world cannot be loaded, or no pair is held out or fits.
        ReleaseError, SourceError: The release is not there.
    """
    if len(set(models)) < len(models):
        raise ConfigError("a model is given twice", "each model once")
    given = settings.training.model_dump(include=_READ) if settings.training else {}
    training = TrainingSettings.model_validate(given | {"model": models[0], "method": "dpo"})
    for model in models:
        check_model_folder(model, ("config.json", "adapter_config.json"))
    found = {} if play and not asked else _rank_pairs(settings, training, models, asked)
    return found if play is None else found | {"played": _play(training, models, play)}


def _play(training: TrainingSettings, models: Sequence[str], play: PlaySettings) -> dict[str, Any]:
    check_packages(training)
    question = PlayRequest(settings=training, models={model: model for model in models}, **asdict(play))
    played = play_world(question, model_environment(training, _are_here(models)))
    return {**asdict(play), "models": {model: _success(played, model, models[0]) for model in models}}


def _are_here(models: Sequence[str]) -> bool:
    """Return whether no model is on the Hub."""
    return all(Path(model).is_absolute() for model in models)


def _success(played: PlayedTasks, model: str, first: str) -> dict[str, Any]:
    """Return the share of tasks that a model solves, with intervals over tasks, beside the first model."""
    tasks = [str(number) for number in range(len(played.rewards[model]))]
    solved, base = ([reward >= SOLVED for reward in played.rewards[name]] for name in (model, first))
    apart = [one - other for one, other in zip(solved, base, strict=True)]

    def mean(values: Sequence[int], chosen: Iterable[int]) -> float:
        return statistics.fmean(values[index] for index in chosen)

    every = range(len(tasks))
    found = {
        "tasks": len(tasks),
        "success": mean(solved, every),
        "success_interval": resample(tasks, lambda chosen: mean(solved, chosen)),
        "reward": statistics.fmean(played.rewards[model]),
        "calls": played.calls[model],
        "cut": played.cut[model],
        "malformed": played.malformed[model],
    }
    if model != first:
        found |= {"gain": mean(apart, every)}
        found |= {"gain_interval": resample(tasks, lambda chosen: mean(apart, chosen))}
    return found


def _rank_pairs(
    settings: RunSettings, training: TrainingSettings, models: Sequence[str], asked: str | None
) -> dict[str, Any]:
    release = resolve_training_release(asked or settings.release.name, settings.workspace / "releases")
    if release.path is not None and not held_out_files(release.path):
        raise TrainingError(
            f"{NO_PAIR} ({release.place})",
            "pairs in split `validation` or `test`",
            "raise release.validation or release.test, or measure on a release of more sessions",
        )
    check_packages(training)
    question = PreferenceRequest(
        release=release, settings=training, models={model: model for model in models}
    )
    measured = measure_preferences(
        question, model_environment(training, release.path is not None and _are_here(models))
    )
    return {
        "release": f"{release.name}@{release.version}",
        "digest": release.digest,
        "pairs": len(measured.pairs),
        "sessions": len({pair.get("trace_id", "") for pair in measured.pairs}),
        "left_out": measured.left_out,
        "models": {model: _figures(measured, model, models[0]) for model in models},
    }


def _figures(measured: PreferenceMargins, model: str, first: str) -> dict[str, Any]:
    traces = [pair.get("trace_id", "") for pair in measured.pairs]

    def of(chosen: Sequence[int], name: str = model) -> PreferenceSummary:
        return PreferenceSummary.of([measured.margins[name][index] for index in chosen])

    def gain(chosen: Sequence[int]) -> float:
        return of(chosen).accuracy - of(chosen, first).accuracy

    every = range(len(traces))
    found = asdict(of(every))
    found["accuracy_interval"] = resample(traces, lambda chosen: of(chosen).accuracy)
    found["margin_interval"] = resample(traces, lambda chosen: of(chosen).margin)
    if model != first:
        found |= {"gain": gain(every), "gain_interval": resample(traces, gain)}
    margins = measured.margins[model]
    found["by_operation"] = _grouped(margins, map(_operations, measured.pairs))
    found["by_source"] = _grouped(margins, (pair.get("label_source", "unknown") for pair in measured.pairs))
    return found


def _operations(pair: dict[str, str]) -> str:
    chosen, rejected = (pair.get(f"{side}_operation", "unknown") for side in ("chosen", "rejected"))
    return f"{chosen} over {rejected}"


def _grouped(margins: Sequence[float], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return figures by the name of each pair, the most frequent name first."""
    groups: dict[str, list[float]] = {}
    for margin, name in zip(margins, names, strict=True):
        groups.setdefault(name, []).append(margin)
    largest_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return {name: asdict(PreferenceSummary.of(found)) for name, found in largest_first}


def evaluation_table_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Format the result of `evaluate_models` as rows of a closing table."""
    return (_pairs_rows(record) if "models" in record else []) + (
        _played_rows(record["played"]) if "played" in record else []
    )


def _played_rows(played: dict[str, Any]) -> list[tuple[str, str]]:
    first, last = played["first"], played["first"] + played["tasks"] - 1
    how = f"temperature {played['temperature']:g}" if played["temperature"] else "greedy"
    rows = [("world", f"{played['world']}, tasks {first} to {last}, {how}")]
    for model, found in played["models"].items():
        solved = f"solves {found['success']:.1%} of {found['tasks']} tasks"
        rows.append((model, solved + _interval(found["success_interval"])))
        if found["reward"] != found["success"]:
            rows.append(("", f"mean reward {found['reward']:.3f}"))
        if not found["calls"]:
            rows.append(("", "it called no tool"))
        if found["cut"]:
            rows.append(("", f"{found['cut']} episodes ended at max_length"))
        if found["malformed"]:
            rows.append(("", f"{found['malformed']} actions could not be read"))
        if "gain" in found:
            gain = f"{100 * found['gain']:+.1f} points beside the first model"
            rows.append(("", gain + _interval(found["gain_interval"])))
    return rows


def _pairs_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [("held-out pairs", f"{record['pairs']}, of {record['sessions']} sessions")]
    for reason, count in record["left_out"].items():
        rows.append(("", f"{count} dropped: {reason}"))
    for model, found in record["models"].items():
        rows.append((model, _preferences_text(found, "accuracy_interval")))
        if "gain" in found:
            gain = f"{100 * found['gain']:+.1f} points beside the first model"
            rows.append(("", gain + _interval(found["gain_interval"])))
        for heading in ("by_operation", "by_source"):
            for name, group in found[heading].items():
                rows.append((f"  {name}", _preferences_text(group)))
    return rows


def _preferences_text(found: dict[str, Any], interval: str | None = None) -> str:
    ends = _interval(found[interval]) if interval else ""
    margin = f"margin {found['margin']:+.4f} nats a token"
    return f"{found['accuracy']:.1%} of {found['rows']} ranked right{ends}, {margin}"


def _interval(ends: tuple[float, float] | None) -> str:
    return f" [{ends[0]:.1%}, {ends[1]:.1%}]" if ends else ""
