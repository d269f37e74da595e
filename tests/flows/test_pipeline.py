"""The pipeline: the order of stages and shards, and results that are added up."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from console_says import record_of

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.pipeline import ShardResult, Stage, StageContext, StagePass, run_stages
from tracemill.flows.preflight import run_preflight
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary, add_up
from tracemill.flows.stages import ASK, INGEST, LABEL, STAGES
from tracemill.flows.workspace_commands import label_workspace, run_prepared
from tracemill.records.errors import SourceError

Run = Callable[..., CompletedProcess[str]]
SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"


def states(count: int) -> ShardResult:
    return ShardResult(Summary(states=count))


def test_counts_are_added_up_and_what_was_added_stays_as_it_was() -> None:
    one = Summary(files=2, flags=Counter(a=1), stopped="the cap", gate={"version": 1}, outages={"x": "down"})
    two = Summary(files=3, flags=Counter(a=2, b=1), stopped="later", gate={"version": 2}, unmatched=("m",))
    both = one + two
    assert (both.files, both.flags, both.stopped) == (5, {"a": 3, "b": 1}, "the cap")
    assert (both.gate, both.outages, both.unmatched) == ({"version": 2}, {"x": "down"}, ("m",))
    assert (one.files, one.flags, two.flags) == (2, {"a": 1}, {"a": 2, "b": 1})
    assert add_up([one, two, one]) == both + one
    assert Summary.from_json(json.loads(json.dumps(both.to_json()))) == both
    with pytest.raises(FrozenInstanceError):
        one.files = 3  # type: ignore[misc]


def test_results_are_merged_by_batch_and_the_last_release_counts() -> None:
    released = ReleaseOutcome("r", "1", 4, True, {}, {})
    first = ShardResult(Summary(asked=2), batches={"t1": Summary(asked=2)}, accepted=frozenset("a"))
    second = ShardResult(Summary(pairs=Counter(x=1)), batches={"t1": Summary(pairs=Counter(x=1))})
    merged = first + second + ShardResult(release=released)
    assert merged.batches == {"t1": Summary(asked=2, pairs=Counter(x=1))}
    assert (merged.summary.asked, merged.accepted, merged.release) == (2, {"a"}, released)
    assert first.batches == {"t1": Summary(asked=2)}


def test_a_shard_goes_through_all_stages_of_a_pass_before_the_next_begins() -> None:
    came: list[Any] = []

    @contextmanager
    def pairs_of_shards(context: StageContext) -> Iterator[StagePass[StageContext]]:
        came.append("open")
        yield StagePass(
            context,
            iter("ab"),
            states(100),
            lambda shard, result: came.append((shard, result.summary.states)),
            lambda total: states(1000 * (total.summary.states == 122)),
        )
        came.append("close")

    @contextmanager
    def whole(context: StageContext) -> Iterator[StagePass[StageContext]]:
        yield StagePass(context, ["all"])

    def stage(name: str, gives: int, over: Any) -> Stage[StageContext]:
        def run(shard: str, context: StageContext) -> ShardResult:
            came.append((name, shard, context.so_far.summary.states))
            return states(gives)

        return Stage(name, dict, lambda settings: None, over, run)

    stages = [stage("one", 1, pairs_of_shards), stage("ten", 10, pairs_of_shards), stage("end", 0, whole)]
    total = run_stages(stages, StageContext())
    assert came == [
        "open",
        *[("one", "a", 100), ("ten", "a", 101), ("a", 11)],
        *[("one", "b", 111), ("ten", "b", 112), ("b", 11)],
        "close",
        ("end", "all", 1122),
    ]
    assert total.summary.states == 1122


def test_a_fingerprint_is_another_one_where_settings_or_versions_of_its_stage_are() -> None:
    plain, strict = RunSettings(), RunSettings.model_validate({"agreement": {"threshold": 3}})
    changed = [stage.name for stage in STAGES if stage.fingerprint(plain) != stage.fingerprint(strict)]
    assert changed == ["ask", "label"]
    newer = Stage(LABEL.name, lambda: {**LABEL.versions(), "vote": 99}, LABEL.settings, LABEL.over, LABEL.run)
    assert newer.fingerprint(plain) != LABEL.fingerprint(plain)


def prepared(folder: Path, source: Path = SESSIONS) -> Any:
    settings = {"workspace": str(folder), "sources": {"paths": [str(source)], "min_age_minutes": 0}}
    return run_preflight(RunSettings.model_validate(settings))


def test_every_stage_is_run_by_its_executor_and_named_in_the_manifest(tmp_path: Path) -> None:
    ran: list[str] = []

    def execute(stage: Stage[Any], shard: Any, context: Any) -> ShardResult:
        ran.append(stage.name)
        return stage.run(shard, context)

    ready = prepared(tmp_path / "w")
    record = run_prepared(ready, yes=False, execute=execute)
    order = list(dict.fromkeys(ran))
    assert order == [stage.name for stage in STAGES]
    assert ran.count("ingest") == len(ready.plan.shards) == ran.count("ask") == ran.count("label") == 3
    assert (record["summary"]["files"], record["summary"]["traces"], record["summary"]["states"]) == (
        5,
        7,
        69,
    )
    assert record["release"]["rows"] == sum(record["release"]["kept"].values()) == 11
    (manifest,) = (tmp_path / "w" / "runs").glob("*/harvest.json")
    fingerprints = json.loads(manifest.read_text())["stages"]
    assert fingerprints == {stage.name: stage.fingerprint(ready.settings) for stage in STAGES}

    ran.clear()
    again = run_prepared(prepared(tmp_path / "w"), yes=False, execute=execute)
    assert ran == ["consent", "release", "publish", "train"]  # nothing is new
    assert again["summary"]["pairs"] == record["summary"]["pairs"]
    assert again["release"]["version"] == record["release"]["version"]
    assert label_workspace(ready.settings).pairs == record["summary"]["pairs"]


def test_prefect_and_this_process_give_the_same_record(tracemill: Run, tmp_path: Path) -> None:
    here = run_prepared(prepared(tmp_path / "here"), yes=False)
    flow = ["run", "--path", SESSIONS, "--workspace", tmp_path / "flow", "--min-age", 0, "--json"]
    there = record_of(tracemill(*flow))
    assert here["summary"]["pairs"] == {"hindsight: edit over edit": 5} | {
        "hindsight: read over edit": 2,
        "hindsight: read over read": 2,
        "hindsight: run over run": 2,
    }
    assert there["summary"] == here["summary"]
    for key in ("rows", "kept", "dropped", "splits", "labels"):
        assert there["release"][key] == here["release"][key]


def test_pairs_are_made_anew_of_teachers_without_a_budget(tmp_path: Path) -> None:
    record = run_prepared(prepared(tmp_path / "w"), yes=False)
    teachers = [{"type": "simulated", "model": "m"}]
    settings = RunSettings.model_validate({"workspace": str(tmp_path / "w"), "teachers": teachers})
    assert label_workspace(settings).pairs == record["summary"]["pairs"]
    assert not (tmp_path / "w" / "ledger.sqlite").exists()


def test_a_file_that_cannot_be_read_ends_a_run_after_it_was_looked_at(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"type": "user", "uuid": "1", "sessionId": "s", "message": {"role"')
    with pytest.raises(SourceError):
        run_prepared(prepared(tmp_path / "w", tmp_path / "cut.jsonl"), yes=False)
    assert not list((tmp_path / "w").glob("pairs/*"))


def test_stages_that_share_their_shards_stand_next_to_each_other() -> None:
    assert ASK.over is LABEL.over
    assert INGEST.over is not ASK.over
    passes = [stage.over for stage in STAGES]
    runs = [over for at, over in enumerate(passes) if at == 0 or passes[at - 1] is not over]
    assert len(runs) == 5
