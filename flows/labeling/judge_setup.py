"""Build the judge of a configuration, with the precision that was measured of it."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from tracemill.flows.config.run_settings import RunSettings
from tracemill.pairs.judge import JUDGE_VERSION, Judge, JudgePrecision
from tracemill.records.errors import WorkspaceError
from tracemill.records.identity import canonical_json, digest
from tracemill.records.storage.atomic_files import write_json
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings

FILE = "judge.json"
FEWEST_KNOWN = 30
"""Least cases of known rewards that a precision rests on."""
NOT_MEASURED = "not asked: its precision is not measured (`tracemill judge TABLE`)"
_NOT_THE_JUDGE = {"name", "prices", "terms", "local", "base_url", "api_key_env"}


def judge_of(settings: RunSettings) -> Judge | None:
    """Return the judge of a configuration, None without a judge.

    Raises WorkspaceError if the file of measured precisions is damaged.
    """
    if settings.judge is None or not settings.asked_teachers():
        return None
    stored = read_precisions(settings.workspace).get(judge_key(settings.judge))
    return Judge(settings.judge.model, settings.judge.family, stored)


def judge_key(judge: BaseTeacherSettings) -> str:
    """Return the key of a judge's precision: a hash of its settings and prompt version."""
    given = judge.model_dump(mode="json", exclude=_NOT_THE_JUDGE)
    return digest(JUDGE_VERSION, canonical_json(given), size=8)


def judge_fingerprint(settings: RunSettings) -> dict[str, Any]:
    """Return the settings and versions that a judge's pairs depend on; empty without a judge."""
    judge = judge_of(settings)
    if judge is None or settings.judge is None:
        return {}
    return {"judge": [JUDGE_VERSION, judge_key(settings.judge), judge.precision and asdict(judge.precision)]}


def judge_text(judge: Judge) -> str:
    """Return name and precision of a judge as one line of text."""
    if judge.precision is None:
        return f"{judge.model}: {NOT_MEASURED}"
    known = f"{judge.model}: {judge.precision} ({', '.join(judge.precision.tables)})"
    return known if judge.precision.may_vote else f"{known}: not asked, it may be no better than chance"


def read_precisions(root: Path) -> dict[str, JudgePrecision]:
    """Return the measured precisions of a workspace, by `judge_key`."""
    path = root / FILE
    if not path.exists():
        return {}
    try:
        rows: Mapping[str, Any] = orjson.loads(path.read_bytes())
        return {key: JudgePrecision(**row | {"tables": tuple(row["tables"])}) for key, row in rows.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise WorkspaceError(f"{path} is damaged", "what `tracemill judge` wrote", "remove it") from None


def write_precision(root: Path, judge: BaseTeacherSettings, found: JudgePrecision) -> None:
    """Store a measured precision in place of an older one; with too few known cases store none."""
    kept = read_precisions(root)
    kept.pop(judge_key(judge), None)
    if found.right + found.wrong >= FEWEST_KNOWN:
        kept[judge_key(judge)] = found
    write_json(root / FILE, {key: asdict(each) for key, each in kept.items()})
