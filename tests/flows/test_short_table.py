"""The end of a run: 25 lines at most in plain words, what comes next, what to change where nothing came."""

import io
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from datasets import load_dataset
from rich.console import Console

from tracemill.flows.run_state.closing_table import print_closing
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.runtime.progress import progress_meter, show_step
from tracemill.flows.short_table import MOST_LINES, closing_lines, short_rows, what_to_change

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ROOT / "examples" / "sessions" / "claude_code"
Run = Callable[..., CompletedProcess[str]]
MOST_STATUS_LINES = 40
ASKS_NOBODY = "   # what teachers would cost; asks nobody"
NONE = ReleaseOutcome(None, None, 0, False, {}, {}, "no pair was found")


def record_with(summary: Summary, release: ReleaseOutcome | None, teachers: int = 0) -> dict[str, Any]:
    names = [f"t{number}" for number in range(teachers)]
    made = asdict(release) if release else None
    return {
        "summary": summary.to_json(),
        "release": made,
        "teachers": names,
        "cap_usd": 1.0 if teachers else None,
    }


def test_what_was_made_comes_first_and_what_is_missing_last() -> None:
    summary = Summary(
        files=5,
        traces=7,
        sources=Counter({"claude_code": 6, "pi": 1}),
        states=69,
        asked=222,
        not_asked=Counter({"student family": 54}),
        calls=222,
        spent_usd=0.1275,
        verdicts=Counter({"pair": 22, "agrees_with_student": 33, "dead_zone": 8}),
        hindsight_skips=Counter({"x": 8, "y": 4}),
        flags=Counter({"rewind": 5}),
        skipped=Counter({"record without type": 9}),
        unknown=Counter({"new kind": 1_000}),
        unread=Counter({"empty file": 2}),
        redactions=Counter({f"KIND_{number}": 9 - number for number in range(6)}),
    )
    kept = {"teachers: edit over edit": 20, "teachers: read over list": 2, "hindsight: read over edit": 9}
    dropped = {"document_deduplicator(preference): repeats an earlier row": 1}
    release = ReleaseOutcome(
        "w/releases/demo/1", "1", 31, True, dropped, kept, gate="1,505 texts scanned, nothing found"
    )
    rows = short_rows(record_with(summary, release, teachers=4))
    assert [name for name, _ in rows] == [
        *("made", "deciding pairs", "privacy check", "redacted", "cost", "asked", "read", "no pair"),
        *("dropped", "not read", "warnings"),
    ]
    told = dict(rows)
    assert told["made"].splitlines() == [
        "31 pairs, version 1",
        "     22  teachers preferred another action",
        "      9  self-repairs: a failed action, and what fixed it",
    ]
    assert told["deciding pairs"] == "29 of them: a side edits, runs tests or finishes"
    assert told["read"] == "69 steps in 7 sessions of 5 files (6 claude_code, 1 pi)"
    assert told["asked"] == "222 questions to 4 teachers; 54 were not needed"
    assert told["cost"] == "$0.1275 of at most $1.0000"
    assert told["no pair"].splitlines() == [
        "     33  teachers agree with the agent",
        "     12  failed actions without a fix to learn from",
        "      8  too close to call",
    ]
    assert told["redacted"].splitlines()[-1] == "2 more kinds (-v lists them)"
    assert told["warnings"] == "5 on the files that were read (-v lists them)"
    assert told["not read"] == "2 files and 1,009 records (-v says why)"


@pytest.mark.parametrize(
    ("simulated", "said"),
    [("none", "$0.0000 of at most $1.0000"), ("some", "(partly simulated)"), ("all", "$1.0000 (simulated)")],
)
def test_a_made_up_cost_says_so(simulated: str, said: str) -> None:
    record = record_with(Summary(), None, 2) | {"simulated": simulated}
    assert dict(short_rows(record))["cost"].endswith(said)


ROWS = [("made", "31 pairs, version 1\n     22  teachers preferred another action"), ("cost", "nothing")]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, ["  made   31 pairs, version 1", "              22  teachers preferred another action"]),
        (
            40,
            [
                "  made",
                "    31 pairs, version 1",
                "         22  teachers preferred",
                "             another action",
                "  cost",
            ],
        ),
    ],
)
def test_wrapped_lines_of_the_table_are_indented(width: int, lines: list[str]) -> None:
    out = io.StringIO()
    print_closing(Console(file=out, width=width), ROWS, "run")
    assert out.getvalue().splitlines()[: len(lines) + 2] == ["run", "", *lines]


def test_a_long_row_goes_on_below_its_beginning() -> None:
    out = io.StringIO()
    print_closing(Console(file=out, width=60), [("terms", "word " * 20)], "run")
    first, second = out.getvalue().splitlines()[2:4]
    assert first.startswith("  terms   word word")
    assert second.startswith("            word word")
    assert len(first) <= 60


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, None),
        (1, "1 row is too few to measure on: read more sessions, or raise `validation` in [release]"),
        (19, "19 rows are too few to measure on: read more sessions, or raise `validation` in [release]"),
        (20, None),
    ],
)
def test_a_split_that_is_too_small_to_measure_on_says_what_to_do(count: int, said: str | None) -> None:
    splits = {"train": 53} | ({"validation": count} if count else {})
    release = ReleaseOutcome("w/releases/demo/1", "1", 53 + count, True, {}, {}, splits=splits)
    assert dict(short_rows(record_with(Summary(), release))).get("validation") == said


def test_a_warning_on_labels_says_what_to_do() -> None:
    warned = ReleaseOutcome(
        "w/releases/demo/1", "1", 9, True, {}, {}, warnings=["Teachers may share errors."]
    )
    assert dict(short_rows(record_with(Summary(), warned)))["label warnings"].splitlines() == [
        "Teachers may share errors.",
        "add a teacher of another model family, or raise `threshold` in [agreement]",
    ]


EVERYTHING_LEFT_OUT = Summary(left_out=Counter({"not selected: too early": 3}))
READ = Summary(files=1, traces=1, states=9)


@pytest.mark.parametrize(
    ("summary", "teachers", "said"),
    [
        (Summary(), 0, "give a folder of sessions, such as `--claude-code ~/.claude/projects`"),
        (EVERYTHING_LEFT_OUT, 0, "`--min-age 0` takes those that were just written to"),
        (READ, 0, "`--preset open --max-usd 10` asks teachers"),
        (READ + Summary(asked=4, failures=Counter({"timeout": 4})), 2, "`tracemill doctor --live` tries"),
        (
            READ + Summary(asked=4, verdicts=Counter({"too_few_votes": 4})),
            2,
            "lower `threshold` or `min_families`",
        ),
        (READ + Summary(asked=4, verdicts=Counter({"no_agreement": 4})), 2, "add a teacher, or a `judge`"),
        (READ + Summary(asked=4, verdicts=Counter({"agrees_with_student": 4})), 2, "of a weaker agent"),
        (READ + Summary(pairs=Counter({"hindsight: read over edit": 2})), 0, ""),
    ],
)
def test_a_run_without_rows_says_what_to_change(summary: Summary, teachers: int, said: str) -> None:
    record = record_with(summary, NONE, teachers)
    change = what_to_change(record)
    assert said in change
    assert bool(said) == bool(change)
    assert dict(short_rows(record))["made"] == "no release: no pair was found"
    assert what_to_change(record_with(summary, ReleaseOutcome("p", "1", 1, True, {}, {}), teachers)) == ""


def test_the_next_command_depends_on_what_there_is() -> None:
    without = closing_lines(record_with(READ, NONE), Path("my work"))
    assert without == ["next     tracemill estimate --preset open --max-usd 10 -w 'my work'" + ASKS_NOBODY]
    asked = closing_lines(record_with(READ, NONE, 2), Path("w"))
    assert asked == ["next     tracemill status -w w"]
    labels = ReleaseOutcome("r/1", "1", 0, True, {}, {}, labels={"solved": 4})
    assert (
        closing_lines(record_with(READ, labels, 2), Path("w"))[1] == "         load_dataset('r/1', 'solved')"
    )


def test_steps_of_a_stage_are_named_while_it_goes_on() -> None:
    with progress_meter(None) as meter:
        meter.begin("normalise and release", 0)
        show_step("check for private text")
        assert meter.line() == "check for private text"
    show_step("nobody is shown this")
    assert meter.stage == "check for private text"


def test_a_run_ends_in_few_lines_that_can_be_used(tracemill: Run, tmp_path: Path) -> None:
    """`-v` has every figure, `-q` the path of the release alone; no control characters without a terminal."""
    flags = ("run", "--claude-code", SESSIONS, "--min-age", 0, "-w", tmp_path / "w")
    done = tracemill(*flags)
    assert done.returncode == 0
    assert all(re.fullmatch(r"[a-z ]+( \d+/\d+|, \d+ texts)?", line) for line in done.stderr.splitlines())
    table, _, below = done.stdout.partition("\ndataset  ")
    assert len(table.splitlines()) <= MOST_LINES
    assert not re.search(r"[^\n -~]| $", done.stdout, re.MULTILINE)
    path, load, report, *following = below.splitlines()
    assert load.strip() == f"load_dataset({path!r}, 'dpo')"
    assert len(load_dataset(path, "dpo", split="train")) > 0
    assert Path(report.removeprefix("report   ")).is_file()
    assert following == [
        f"next     tracemill status -w {tmp_path / 'w'} --pairs 3",
        f"then     tracemill estimate --preset open --max-usd 10 -w {tmp_path / 'w'}" + ASKS_NOBODY,
    ]
    assert "terms            vendors' terms restrict training on " in table
    shown = tracemill("status", "-w", tmp_path / "w").stdout
    assert len(shown.splitlines()) <= MOST_STATUS_LINES
    assert shown.split("\n", 1)[1].startswith(table.split("\n", 1)[1])
    assert f"report {report.removeprefix('report   ')}\n" in shown
    again = tracemill(*flags).stdout
    assert "read             " in again
    assert "sessions that were read before\n" in again
    quiet = tracemill(*flags, "-q")
    assert (quiet.stdout, quiet.stderr) == (f"{path}\n", "")
    work = ("--workspace", tmp_path / "w")
    said = {("ingest", SESSIONS, "--min-age", 0): "", ("label",): "", ("release", "write"): f"{path}\n"}
    for stage, prints in said.items():
        silent = tracemill(*stage, *work, "-q")
        assert (silent.returncode, silent.stdout, silent.stderr) == (0, prints, ""), stage
    verbose = tracemill(*flags, "-v").stdout
    assert "nothing new" not in verbose
    for name in ("skipped records", "self-repairs not used", "pairs made"):
        assert f"  {name} " in verbose
        assert f"  {name} " not in done.stdout
    asked = tracemill("replay", "--preset", "simulated", "--max-usd", 1, *work, "-q")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")


def test_a_home_that_prefect_cannot_use_is_one_line(tracemill: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    home = tmp_path / "file" / "home"
    flags = ("--claude-code", SESSIONS, "--min-age", 0, "-w", tmp_path / "w")
    done = tracemill("run", *flags, PREFECT_HOME=str(home))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"tracemill: {home} cannot be used (Not a directory); expected a folder for Prefect's own records; "
        "name one in PREFECT_HOME\n"
    )
