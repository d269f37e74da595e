"""Which sessions are taken: every rule alone, and the flags on the command line with their counts."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet as pq
import pytest

from tracemill.flows.admission.glob_patterns import selection_day
from tracemill.flows.admission.select_settings import SelectSettings
from tracemill.flows.admission.trace_filter import TraceFilter
from tracemill.flows.config.run_settings import load_settings
from tracemill.records.errors import ConfigError
from tracemill.records.message import Message
from tracemill.records.trace import Context, Step, Trace

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
Run = Callable[..., CompletedProcess[str]]


def _trace(*cwds: str, **fields: object) -> Trace:
    messages = (Message("user", "x"), *(Message("assistant", "y") for _ in cwds))
    steps = tuple(
        Step(i, i + 1, model="anthropic/claude-opus-5", family="anthropic", cwd=cwd)
        for i, cwd in enumerate(cwds)
    )
    given = {"project": "api", "started_at": "2026-04-15T23:30:00-02:00", **fields}
    return Trace("t", "claude_code", "claude_code", "claude_code", (Context(0, messages, steps),), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        ({}, None),
        ({"projects": ["api"]}, None),
        ({"projects": ["API"]}, None),
        ({"projects": ["ap*"]}, None),
        ({"projects": ["web"]}, "other project"),
        ({"projects": ["/srv/acme"]}, None),
        ({"projects": ["/srv/acme/"]}, None),
        ({"projects": ["/srv/*"]}, None),
        ({"projects": ["/srv/acm"]}, "other project"),
        ({"projects": ["scratch"]}, "other project"),
        ({"deny_projects": ["scratch"]}, "denied project"),
        ({"deny_projects": ["/tmp/*"]}, "denied project"),
        ({"deny_projects": ["acme"]}, "denied project"),
        ({"projects": ["api"], "deny_projects": ["acme"]}, "denied project"),
        ({"deny_projects": ["acm"]}, None),
        ({"repositories": ["own/*"]}, "other repository"),
        ({"models": ["*opus*"]}, None),
        ({"models": ["*sonnet*"]}, "other model"),
        ({"deny_models": ["anthropic/*"]}, "denied model"),
        ({"outcomes": ["resolved"]}, "other outcome"),
        ({"outcomes": ["unknown", "resolved"]}, None),
        ({"since": "2026-04-16"}, None),
        ({"since": "2026-04-17"}, "too early"),
        ({"until": "2026-04-16"}, None),
        ({"until": "2026-04-15"}, "too late"),
    ],
)
def test_each_rule_alone(select: dict, reason: str | None) -> None:
    trace = _trace("/srv/acme/api", "/tmp/scratch")
    found = SelectSettings.model_validate(select).reason(trace)
    assert found == (None if reason is None else f"not selected: {reason}")


def test_what_a_session_does_not_say_is_on_no_list_of_what_is_taken() -> None:
    silent = _trace(project=None, started_at=None)
    for select, reason in (
        ({"projects": ["*"]}, "other project"),
        ({"repositories": ["*"]}, "other repository"),
        ({"models": ["*"]}, "other model"),
        ({"since": "2020-01-01"}, "no date"),
        ({"until": "2030-01-01"}, "no date"),
        ({"deny_projects": ["*"], "deny_repositories": ["*"], "deny_models": ["*"]}, None),
    ):
        found = SelectSettings.model_validate(select).reason(silent)
        assert found == (None if reason is None else f"not selected: {reason}")


def test_folders_of_windows_and_repositories_by_either_name() -> None:
    trace = _trace(r"C:\work\acme\api", repository="Orchard/Seedbank")
    deny = SelectSettings.model_validate({"deny_projects": ["c:/work/acme"]})
    assert deny.reason(trace) == "not selected: denied project"
    for name in ("seedbank", "orchard/seedbank", "orchard/*"):
        assert SelectSettings.model_validate({"repositories": [name]}).reason(trace) is None
        assert SelectSettings.model_validate({"deny_repositories": [name]}).reason(trace) is not None


def test_a_path_is_denied_in_redacted_text_too() -> None:
    deny = SelectSettings.model_validate({"deny_projects": ["/home/dev/parcels"]})
    assert deny.reason(_trace("/home/user_1a2b3c4d/parcels/src")) == "not selected: denied project"
    assert deny.reason(_trace("/home/alice/parcels")) is None


def test_days_are_those_of_utc() -> None:
    assert selection_day("2026-04-15T23:30:00-02:00") == date(2026, 4, 16)
    assert selection_day("2026-04-15T23:30:00.123Z") == date(2026, 4, 15)
    assert selection_day("2026-04-15T23:30:00") == date(2026, 4, 15)
    assert (selection_day("yesterday"), selection_day(None)) == (None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("since = 2026-05-02\nuntil = 2026-05-01", "later than until"),
        ("since = 'soon'", "select.since"),
        ("projects = ['']", "empty glob"),
        ("outcomes = ['good']", "select.outcomes"),
        ("project = ['x']", "unknown key 'select.project'"),
        ("deny_projects = ['[alpha']", "the glob '[alpha' has a [ that nothing closes; write [[] for"),
        ("projects = ['a', 'b[!]']", "the glob 'b[!]' has a [ that nothing closes"),
        ("models = ['[a]x[]']", "the glob '[a]x[]' has a [ that nothing closes"),
        ("repositories = ['x[z-a]']", "the glob 'x[z-a]' has a range in [] that runs backwards"),
    ],
)
def test_a_selection_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(f"[select]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {})
    assert said in str(caught.value)


def test_a_flag_adds_to_what_the_configuration_denies(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("[select]\ndeny_projects = ['one']\nprojects = ['a']\n")
    select = load_settings(path, {"select": {"deny_projects": ["two"], "projects": ["b"]}}).select
    assert select.deny_projects == ("one", "two")
    assert select.projects == ("b",)


def test_globs_that_can_match_are_let_through() -> None:
    globs = ("[[]alpha", "[]]x", "[!]]x", "[a-z]*", "alpha]", "[!a]", "[][]x", "a?c")
    assert SelectSettings.model_validate({"projects": globs}).projects == globs
    assert SelectSettings.model_validate({"projects": ["[[]alpha"]}).reason(_trace(project="[alpha")) is None


def test_an_entry_that_fits_no_session_is_named_and_one_that_fits_a_session_left_out_is_not() -> None:
    lists = {
        "projects": ["api", "apj"],
        "deny_projects": ["scratch", "alhpa", "./api"],
        "repositories": ["own/*", "own/nmae"],
        "deny_repositories": ["other/*"],
        "models": ["*opus*", "*sonet*"],
        "deny_models": ["openai/*"],
        "outcomes": ["unknown", "resolved"],
    }
    select = SelectSettings.model_validate(lists)
    trace_filter = TraceFilter(lambda trace: None, select)
    trace = _trace("/srv/acme/api", "/tmp/scratch", repository="own/name")
    matched: Counter[int] = Counter()
    assert trace_filter.reason(trace, matched) == "not selected: denied project"
    assert select.unmatched(matched) == [
        "nothing matches projects = 'apj'",
        "nothing matches deny_projects = 'alhpa'",
        "nothing matches deny_projects = './api'",
        "nothing matches repositories = 'own/nmae'",
        "nothing matches deny_repositories = 'other/*'",
        "nothing matches models = '*sonet*'",
        "nothing matches deny_models = 'openai/*'",
        "nothing matches outcomes = 'resolved'",
    ]
    assert SelectSettings().unmatched([]) == []
    assert TraceFilter(lambda trace: None, None).reason(trace, matched) is None


def test_the_closing_table_names_what_matched_nothing(console: Run, tmp_path: Path) -> None:
    flags = ("--deny-project", "alhpa", "--project", "parcels", "--project", "almanac\u202e")
    done = console("ingest", EXAMPLES, "--workspace", tmp_path / "w", *flags)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "nothing matches deny_projects = 'alhpa'" in done.stdout
    assert r"nothing matches projects = 'almanac\u202e'" in done.stdout
    assert "'parcels'" not in done.stdout


def _ingest(console: Run, work: Path, *flags: object) -> dict:
    done = console("ingest", EXAMPLES, "--workspace", work, "--json", *flags)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)["totals"]


def _projects(work: Path) -> list[str]:
    tables = [pq.read_table(path, partitioning=None) for path in (work / "traces").rglob("*.parquet")]
    return sorted(name or "-" for table in tables for name in table["project"].to_pylist())


def test_what_is_denied_is_written_nowhere_and_counted(console: Run, tmp_path: Path) -> None:
    totals = _ingest(console, tmp_path / "a", "--deny-project", "/home/*/parcels")
    assert totals["left_out"] == {"not selected: denied project": 2}
    assert _projects(tmp_path / "a") == ["-", "-", "-", "-", "almanac"]

    totals = _ingest(console, tmp_path / "b", "--project", "parcels", "--since", "2026-04-15")
    assert totals["left_out"] == {"not selected: other project": 5, "not selected: too early": 1}
    assert _projects(tmp_path / "b") == ["parcels"]


def test_a_run_counts_what_it_leaves_out_and_releases_the_rest(console: Run, alone: Any) -> None:
    summary = alone.record["summary"]
    assert summary["left_out"] == {"not selected: too early": 2, "not selected: no date": 2}
    assert (summary["files"], summary["traces"], summary["states"]) == (5, 3, 34)
    shown = console("status", "-w", alone.folder / "w")
    assert "skipped sessions" in shown.stdout
    assert "not selected: too early" in shown.stdout


@pytest.mark.slow
def test_a_replay_leaves_out_what_the_workspace_holds_of_a_denied_project(
    console: Run, tmp_path: Path
) -> None:
    work = tmp_path / "w"
    assert _ingest(console, work)["left_out"] == {}
    flags = ("-w", work, "--preset", "simulated", "--max-usd", 1, "--json", "--deny-project", "parcels")
    done = console("replay", *flags)
    assert done.returncode == 0, done.stderr[-2000:]
    summary = json.loads(done.stdout)["summary"]
    assert summary["left_out"] == {"not selected: denied project": 2}
    assert summary["states"] == 69 - 22


@pytest.mark.slow
def test_a_session_that_lies_in_two_shards_is_asked_and_counted_once(tracemill: Run, tmp_path: Path) -> None:
    source = next((EXAMPLES / "claude_code").glob("*almanac/*.jsonl"))
    lines = source.read_text().splitlines(keepends=True)
    for folder, kept in (("a", lines[: len(lines) // 2]), ("b", lines), ("c", lines[: len(lines) // 3])):
        (tmp_path / "s" / folder).mkdir(parents=True)
        (tmp_path / "s" / folder / source.name).write_text("".join(kept))
    config = tmp_path / "run.toml"
    config.write_text(
        "shard_mb = 0.000001\npreset = 'simulated'\nworkspace = 'w'\n[budget]\nmax_total_usd = 1\n"
    )
    done = tracemill("run", config, "--path", tmp_path / "s", "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    summary = json.loads(done.stdout)["summary"]
    assert (summary["files"], summary["traces"], summary["states"]) == (3, 1, 12)
    assert summary["flags"]["same session in two files, the longer kept"] == 2
    assert summary["asked"] + sum(summary["not_asked"].values()) == 12 * 4
    assert (summary["calls"], summary["reused"]) == (summary["asked"], 0)
    assert sum(summary["verdicts"].values()) == 12
