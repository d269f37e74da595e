"""What is said of a release is said of the rows that are in it, by split, wherever it is said."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from growing_traces import add, rows, trace
from kept_pairs import Kept

from tracemill.data_cards.model.manifest import read_manifest
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.release.release_run import release_pairs
from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.records.message import Message
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

SIZE = 60
LONG = (3, 8, 21)  # sessions that fit however they are cut into no 5,000 tokens


def session(number: int) -> Trace:
    made = trace(number)
    if number not in LONG:
        return made
    [context] = made.contexts
    said = Message("system", f"word{number} " * 5000)
    return replace(made, contexts=(replace(context, messages=(said, *context.messages[1:])),))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, ReleaseOutcome]:
    work = Workspace.open(tmp_path_factory.mktemp("released") / "w")
    add(work, [session(n) for n in range(SIZE)])
    over: dict[str, Any] = {
        "workspace": str(work.root),
        "pairs": {"siblings": False, "repository_share": 0},
        "release": {"views": ["sft"], "max_tokens": 5000},
    }
    settings = load_settings(None, over)
    return work, release_pairs(work, settings, Kept(), make_reredactor(work, settings), "run", Summary())


def splits_of(outcome: ReleaseOutcome) -> dict[str, int]:
    found = Counter(split for split, _ in rows(outcome).values())
    return {name: found[name] for name in ("train", "validation", "test")}


def test_the_closing_table_counts_the_rows_that_are_there(made: tuple[Workspace, ReleaseOutcome]) -> None:
    _, outcome = made
    assert (outcome.rows, len(rows(outcome))) == (57, 57)
    assert outcome.kept == {"hindsight: read over finish": 57}
    assert outcome.dropped == {"max_tokens: more than 5000 tokens, however cut": 3}
    assert outcome.splits == splits_of(outcome)
    assert min(outcome.splits.values()) > 0
    told = dict(
        closing_table_rows(Summary(pairs=Counter({"hindsight: read over finish": 60})), None, [], outcome)
    )
    assert told["dropped"] == "      3  max_tokens: more than 5000 tokens, however cut"
    assert told["pairs released"] == "     57  self-repair: read fixed a failed finish"
    assert told["splits"] == "\n".join(f"{n:>7,}  {name}" for name, n in splits_of(outcome).items())
    assert told["deciding pairs"] == "57 of 57 (a side edits, tests or finishes; the chosen one: 0)"
    assert list(told)[-5:] == ["pairs released", "deciding pairs", "splits", "privacy check", "release"]


def test_manifest_account_report_and_card_say_the_same(made: tuple[Workspace, ReleaseOutcome]) -> None:
    work, outcome = made
    assert outcome.path is not None
    folder, splits = Path(outcome.path), splits_of(outcome)
    manifest = read_manifest(folder)
    assert manifest.growth is not None
    assert (manifest.rows, manifest.growth.new, manifest.growth.stayed) == (57, 57, 0)
    assert {name: entry.rows for name, entry in manifest.tables["dpo"].splits.items()} == splits
    assert [(loss.operator, loss.rows_in, loss.dropped) for loss in manifest.losses if loss.dropped] == [
        ("max_tokens", 60, 3)
    ]
    account = json.loads((work.run_dir("run") / "normalize.json").read_text())
    assert (account["kept"], account["dropped"], account["splits"]) == (57, 3, splits)
    assert account["operators"][-1]["operator"] == "max_tokens"
    report = json.loads((folder / "report.json").read_text())
    assert (report["rows"], report["splits"], report["funnel"][-1]["count"]) == (57, splits, 57)
    page, card = ((folder / name).read_text() for name in ("report.html", "README.md"))
    said = ", ".join(f"{name} {count}" for name, count in splits.items())
    assert f"Splits: {said}." in page
    for name, count in splits.items():
        assert f"| `{name}` | {count} |" in card
    assert "| max_tokens | 60 | 3 |" in card


def test_all_of_them_is_said_where_nothing_was_dropped(made: tuple[Workspace, ReleaseOutcome]) -> None:
    _, outcome = made
    whole = replace(outcome, dropped={})
    told = dict(closing_table_rows(Summary(pairs=Counter(outcome.kept)), None, [], whole))
    assert told["pairs released"] == "all"
