"""The whole run as a user starts it: the console script, real Prefect, real SQLite, real data-juicer."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from datasets import load_dataset

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "sessions"
Run = Callable[..., CompletedProcess[str]]


def _json(done: CompletedProcess[str]) -> dict:
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "w"


def test_the_examples_give_teacher_pairs_and_hindsight_pairs_in_a_release(tracemill: Run, work: Path) -> None:
    record = _json(tracemill("run", ROOT / "configs" / "demo.toml", "--workspace", work, "--json"))
    summary, release = record["summary"], record["release"]
    assert summary["files"] == 5
    assert summary["redactions"]["GITHUB_TOKEN"] == 1
    sources = {kind.split(":")[0] for kind in release["kept"]}
    assert sources == {"teachers", "hindsight"}
    assert sum(release["kept"].values()) == release["rows"]
    assert sum(summary["pairs"].values()) == release["rows"] + sum(release["dropped"].values())
    assert 0 < summary["spent_usd"] <= record["cap_usd"] == 1.0
    assert summary["asked"] == summary["calls"]
    assert summary["asked"] + sum(summary["not_asked"].values()) == 4 * summary["states"]

    rows = load_dataset(release["path"], "dpo", split="train")
    assert len(rows) == release["rows"]
    teacher_rows = [row for row in rows if row["label_source"] == "teachers"]
    assert all(row["simulated"] and row["n_teachers_agreeing"] >= 2 for row in teacher_rows)
    assert not any(row["simulated"] for row in rows if row["label_source"] == "hindsight")
    assert all(row["student_family"] not in row["families"] for row in teacher_rows)
    assert all(row["prompt"][0]["role"] == "system" for row in rows)
    text = (Path(release["path"]) / "README.md").read_text()
    assert "simulated" in text.lower()


def test_a_second_run_of_the_same_configuration_sends_nothing_and_makes_no_version(
    tracemill: Run, work: Path
) -> None:
    record = _json(tracemill("run", ROOT / "configs" / "demo.toml", "--workspace", work, "--json"))
    assert record["summary"]["calls"] == 0
    assert record["summary"]["reused"] == record["summary"]["asked"] > 0
    assert record["summary"]["spent_usd"] == 0
    assert record["release"]["created"] is False
    versions = [p for p in (work / "releases" / "demo").iterdir() if p.is_dir()]
    assert [p.name for p in versions] == [record["release"]["version"]]


def test_show_tells_the_last_run_and_pairs(tracemill: Run, work: Path) -> None:
    done = tracemill("show", "--workspace", work, "--pairs", 2, "--source", "hindsight")
    assert done.returncode == 0
    for word in ("spent / cap", "hindsight:", "release demo", "chosen", "rejected"):
        assert word in done.stdout


def test_the_stages_one_by_one_give_what_the_run_gave(tracemill: Run, work: Path) -> None:
    """The same tables from ingest, replay, pairs and release as from the flow: no shard more, no call,
    no version."""
    shards = sorted(p.name for p in work.rglob("*.parquet"))
    last = _json(tracemill("show", "--workspace", work, "--json"))["run"]["summary"]
    ingested = _json(tracemill("ingest", EXAMPLES, "--out", work, "--json"))
    assert ingested["totals"]["files"] == len(ingested["files"]) == 5
    assert all(f["format"] and f["traces"] and not f["error"] for f in ingested["files"])
    assert ingested["totals"]["states"] == last["summary"]["states"]
    flags = ("--workspace", work, "--json")
    replayed = _json(tracemill("replay", "--preset", "simulated", "--max-usd", 1, *flags))
    assert replayed["summary"]["asked"] == last["summary"]["asked"] == replayed["summary"]["reused"]
    assert replayed["summary"]["calls"] == 0
    assert _json(tracemill("pairs", *flags))["pairs"] == last["summary"]["pairs"]
    losses = _json(tracemill("normalize", *flags))
    released = _json(tracemill("release", "--name", "demo", *flags))
    assert released["kept"] == last["release"]["kept"]
    assert losses["kept"] == released["rows"] == last["release"]["rows"]
    assert released["created"] is False
    assert sorted(p.name for p in work.rglob("*.parquet")) == shards


def test_without_teachers_there_are_hindsight_pairs_only_and_nothing_is_sent(
    tracemill: Run, tmp_path: Path
) -> None:
    """Behind a proxy that leads nowhere, and with a Prefect server of the run's own."""
    home = EXAMPLES / "claude_code"
    lonely = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "PREFECT_API_URL": ""}
    done = tracemill("run", "--claude-code", home, "--workspace", tmp_path / "w", "--json", **lonely)
    record = _json(done)
    assert record["teachers"] == []
    assert (record["cap_usd"], record["summary"]["calls"], record["summary"]["spent_usd"]) == (None, 0, 0)
    assert {kind.split(":")[0] for kind in record["release"]["kept"]} == {"hindsight"}
    assert record["release"]["rows"] >= 3
    assert not (tmp_path / "w" / "ledger.sqlite").exists()


@pytest.mark.slow
def test_sessions_that_grew_and_new_ones_join_and_nothing_is_counted_twice(
    tracemill: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    first, *rest = sorted((EXAMPLES / "claude_code").rglob("*.jsonl"))
    lines = first.read_text().splitlines(keepends=True)
    (folder / first.name).write_text("".join(lines[: len(lines) // 2]))
    flags = ("--claude-code", folder, "--workspace", tmp_path / "w", "--json")
    half = _json(tracemill("run", *flags))
    shutil.copy(first, folder / first.name)
    for path in rest:
        shutil.copy(path, folder / path.name)
    full = _json(tracemill("run", *flags))
    assert half["summary"]["states"] < full["summary"]["states"]
    assert full["summary"]["traces"] == len(rest) + 1
    fresh = _json(tracemill("run", "--claude-code", folder, "--workspace", tmp_path / "fresh", "--json"))
    assert full["release"]["kept"] == fresh["release"]["kept"]
    assert full["release"]["version"] != half["release"]["version"] or half["release"]["version"] is None


@pytest.mark.slow
def test_a_lost_ledger_is_not_paid_again_and_a_lost_key_is_said(tracemill: Run, tmp_path: Path) -> None:
    work = tmp_path / "w"
    flags = ("--claude-code", EXAMPLES / "claude_code", "--workspace", work)
    flags = ("run", *flags, "--preset", "simulated", "--max-usd", 1, "--json")
    first = _json(tracemill(*flags))
    for path in work.glob("ledger.sqlite*"):
        path.unlink()
    again = _json(tracemill(*flags))
    assert again["summary"]["reused"] == first["summary"]["asked"] > 0
    assert (again["summary"]["calls"], again["summary"]["spent_usd"]) == (0, 0)
    (work / "redaction.key").unlink()
    done = tracemill(*flags)
    assert done.returncode == 2
    assert "redaction.key is gone" in done.stderr
    assert not (work / "redaction.key").exists()
