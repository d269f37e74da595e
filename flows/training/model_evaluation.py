"""Measure models on the pairs that a release holds out: all of them, by operation and by source."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.training.resolve_release import resolve_training_release
from tracemill.records.errors import ConfigError, TrainingError
from tracemill.records.version import __version__
from tracemill.train.preferences import (
    NO_PAIR,
    PreferenceMargins,
    PreferenceQuestion,
    Preferences,
    held_out_files,
    measure_preferences,
    resample,
)
from tracemill.train.start_child import check_model_folder, check_packages, training_environment
from tracemill.train.training_job import TrainingJob
from tracemill.train.training_settings import TrainingSettings

_READ = {"max_length", "context", "device", "chat_template", "environment"}
"""Keys of `[training]` that change what is measured."""


def evaluate_models(settings: RunSettings, models: Sequence[str], asked: str | None) -> dict[str, Any]:
    """Return how each model ranks the held-out pairs of the release `asked` names, by default the newest.

    The first model decides which pairs fit, and the others are compared with it on the same pairs.

    Raises:
        ConfigError: A model is given twice.
        TrainingError: A model cannot be loaded, or no pair is held out or fits.
        ReleaseError, SourceError: The release is not there.
    """
    if len(set(models)) < len(models):
        raise ConfigError("a model is given twice", "each model once")
    given = settings.training.model_dump(include=_READ) if settings.training else {}
    training = TrainingSettings.model_validate(given | {"model": models[0], "method": "dpo"})
    for model in models:
        check_model_folder(model, ("config.json", "adapter_config.json"))
    release = resolve_training_release(asked or settings.release.name, settings.workspace / "releases")
    if release.path is not None and not held_out_files(release.path):
        raise TrainingError(
            f"{NO_PAIR} ({release.place})",
            "pairs in split `validation` or `test`",
            "raise release.validation or release.test, or measure on a release of more sessions",
        )
    check_packages(training)
    job = TrainingJob(release=release, settings=training, tracemill_version=__version__)
    question = PreferenceQuestion(
        release=release, settings=training, models={model: model for model in models}
    )
    measured = measure_preferences(question, _environment(job, models))
    return {
        "release": job.name,
        "digest": release.digest,
        "pairs": len(measured.pairs),
        "sessions": len({pair.get("trace_id", "") for pair in measured.pairs}),
        "left_out": measured.left_out,
        "models": {model: _figures(measured, model, models[0]) for model in models},
    }


def _environment(job: TrainingJob, models: Iterable[str]) -> dict[str, str]:
    """Return the environment of the child, which is online if any of the models is at the Hub."""
    remote = next((model for model in models if not Path(model).is_absolute()), job.settings.model)
    settings = job.settings.model_copy(update={"model": remote})
    return training_environment(job.model_copy(update={"settings": settings}))


def _figures(measured: PreferenceMargins, model: str, first: str) -> dict[str, Any]:
    traces = [pair.get("trace_id", "") for pair in measured.pairs]

    def of(chosen: Sequence[int], name: str = model) -> Preferences:
        return Preferences.of([measured.margins[name][index] for index in chosen])

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
    return {name: asdict(Preferences.of(found)) for name, found in largest_first}


def evaluation_table_rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Write what `evaluate_models` returned as lines of a closing table."""
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
