"""The closing table says stored reasons in plain words, and keeps reasons it does not know."""

from collections import Counter
from dataclasses import replace
from typing import get_args

from tracemill.agreement.voting.early_stop import AGREED, CERTAIN, HOPELESS
from tracemill.agreement.voting.labels import Verdict
from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.closing_words import in_plain_words
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.pairs.hindsight import NO_FIX, NOT_CALL
from tracemill.records.plain_words import PLAIN_WORDS, stage_in_words
from tracemill.teachers.gate.gate_decisions import EXPLORED, STUDENT_FAMILY
from tracemill.teachers.planning.schedule import FULL, NOT_NEEDED

OUTCOME = ReleaseOutcome("w/releases/demo/2026.11.23", "2026.11.23", 1, True, {}, {})


def test_every_reason_that_the_code_stores_has_plain_words() -> None:
    stops = {f"{NOT_NEEDED}: {why}" for why in (CERTAIN, HOPELESS, AGREED)}
    reasons = {*stops, FULL, STUDENT_FAMILY, EXPLORED}
    assert PLAIN_WORDS.keys() == {*get_args(Verdict), *reasons}


def test_the_rows_of_a_run() -> None:
    summary = Summary(
        states=69,
        reused=4,
        calls=213,
        flags=Counter({"unfinished run resumed": 3, "rewind": 1}),
        not_asked=Counter({f"{NOT_NEEDED}: {CERTAIN}": 39, STUDENT_FAMILY: 19, "context_too_long": 2}),
        verdicts=Counter({"pair": 56, "dead_zone": 1}),
        hindsight_skips=Counter({NOT_CALL: 8, NO_FIX: 3}),
        pairs=Counter(
            {"teachers: read over edit": 18, "hindsight: edit over edit": 5, "lint: edit over run": 1}
        ),
    )
    rows = dict(closing_table_rows(summary, None, [], OUTCOME))
    assert rows["steps"] == "69 (points where a model was asked what to do next)"
    assert rows["warnings"].splitlines() == [
        "      3  unfinished run resumed",
        "      1  rewind",
    ]
    assert rows["skipped questions"].splitlines() == [
        "     39  outcome already decided",
        "     19  teacher has the agent's own model family",
        "      2  context_too_long",
    ]
    assert rows["calls"] == "213 sent, 4 cached"
    assert rows["votes"].splitlines() == ["     56  pair made", "      1  too close to call"]
    assert rows["self-repairs not used"].splitlines() == [
        "      8  failure not caused by the call",
        "      3  no fix within 5 steps",
    ]
    assert rows["pairs made"].splitlines() == [
        "     18  teachers: chose read, agent did edit",
        "      5  self-repair: edit fixed a failed edit",
        "      1  lint: edit over run",
    ]
    assert rows["release"] == "w/releases/demo/2026.11.23\nwrote version 2026.11.23 (1 row)"


def test_a_run_without_a_release_says_nothing_of_one() -> None:
    summary = Summary(pairs=Counter({"hindsight: edit over edit": 5}))
    rows = [name for name, _ in closing_table_rows(summary, None, [], None)]
    assert rows[-2:] == ["self-repairs not used", "pairs made"]


def test_pairs_that_decide_something_are_counted() -> None:
    kept = {"teachers: read over edit": 18, "revised_edit: edit over edit": 5, "hindsight: list over read": 3}
    rows = dict(closing_table_rows(Summary(), None, [], replace(OUTCOME, kept=kept)))
    assert rows["deciding pairs"] == "23 of 26 (a side edits, tests or finishes; the chosen one: 5)"
    assert "deciding pairs" not in dict(closing_table_rows(Summary(), None, [], OUTCOME))


def test_counts_under_equal_words_add_up() -> None:
    assert in_plain_words({"siblings: edit over run": 2}) == {"sibling runs: edit solved it, run did not": 2}


def test_stages_of_a_release_are_said_in_the_words_of_the_table() -> None:
    said = {
        "states": "steps",
        "questions asked": "questions asked",
        "vote: dead_zone": "vote: too close to call",
        "vote: agrees_with_student": "vote: teachers agree with the agent",
        f"not asked: {NOT_NEEDED}: {HOPELESS}": "not asked: no pair possible any more",
        f"no hindsight pair: {NO_FIX}": f"no self-repair: {NO_FIX}",
        "failed call: rate_limited": "failed call: rate limited",
    }
    assert {stage: stage_in_words(stage) for stage in said} == said
