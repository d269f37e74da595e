"""The laws of the sample, and that it is drawn from cheap facts before anything is taken in."""

import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import hub_stub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.flows.admission.select_settings import SelectSettings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.label_shard import load_traces
from tracemill.flows.sources.sampling import (
    BY,
    SampleCandidate,
    SampleOptions,
    draw_stratified_sample,
    seats_per_stratum,
    stratum_length_bucket,
)
from tracemill.flows.sources.shard_plan import UNCHANGED
from tracemill.flows.sources.source_spec import SourceOptions, order_of
from tracemill.flows.sources.watermarks import FILE, MORE_WANTED
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.reading.parquet_rows import TableSlice
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.row_preview import preview_rows
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

ROOT = Path(__file__).resolve().parents[2]

sizes = st.dictionaries(st.text("abcdef", min_size=1, max_size=3).map(lambda t: (t,)), st.integers(1, 60))


def candidates(strata: dict[tuple[str, ...], int]) -> list[SampleCandidate]:
    return [SampleCandidate(f"{name}-{n}", name) for name, size in strata.items() for n in range(size)]


@settings(deadline=None, max_examples=60)
@given(sizes, st.integers(1, 400), st.integers(0, 5))
def test_every_stratum_has_its_share_within_one_and_all_together_are_as_many_as_wanted(
    strata: dict[tuple[str, ...], int], wanted: int, seed: int
) -> None:
    seats = seats_per_stratum(strata, wanted, seed)
    total = sum(strata.values())
    assert sum(seats.values()) == min(wanted, total)
    for name, size in strata.items():
        assert 0 <= seats[name] <= size
        assert abs(seats[name] - Fraction(min(wanted, total) * size, total or 1)) < 1


@settings(deadline=None, max_examples=60)
@given(sizes, st.integers(1, 100), st.integers(0, 5), st.randoms())
def test_the_same_set_gives_the_same_sample_in_whatever_order(
    strata: dict[tuple[str, ...], int], wanted: int, seed: int, shuffler: Any
) -> None:
    order = SampleOptions(wanted, seed, ("repository",))
    given_, other = candidates(strata), candidates(strata)
    shuffler.shuffle(other)
    one, two = draw_stratified_sample(given_, order), draw_stratified_sample(other, order)
    assert one.taken == two.taken
    assert dict(one.strata) == dict(two.strata)
    counts = Counter(c.stratum for c in given_ if c.key in one.taken)
    assert counts == {name: taken for name, (_, taken) in one.strata.items() if taken}


@settings(deadline=None, max_examples=60)
@given(sizes.filter(bool), st.integers(1, 40), st.integers(0, 5))
def test_one_session_more_changes_hardly_anything(
    strata: dict[tuple[str, ...], int], wanted: int, seed: int
) -> None:
    order = SampleOptions(wanted, seed, ("repository",))
    before = candidates(strata)
    name = next(iter(strata))
    after = [*before, SampleCandidate("one more", name)]
    one, two = draw_stratified_sample(before, order), draw_stratified_sample(after, order)
    gone = one.taken - two.taken
    moved = sum(abs(two.strata[n][1] - one.strata[n][1]) for n in one.strata)
    assert len(gone) <= moved + 1


def test_a_large_set_that_grows_by_one_percent_keeps_nearly_all_of_its_sample() -> None:
    strata = {(f"repo-{n}", outcome): 1 + (n * 7) % 90 for n in range(400) for outcome in "yn"}
    before = candidates(strata)
    after = before + [SampleCandidate(f"new-{n}", (f"repo-{n}", "y")) for n in range(len(before) // 100)]
    order = SampleOptions(2000, 7)
    one, two = draw_stratified_sample(before, order), draw_stratified_sample(after, order)
    assert (len(one.taken), len(two.taken)) == (2000, 2000)
    assert len(one.taken & two.taken) > 1930


def test_small_strata_have_a_fair_chance() -> None:
    """A thousand strata of one share ten seats: each is taken about as often as any other."""
    strata = {(f"s{n}",): 1 for n in range(1000)} | {("large",): 1000}
    taken = Counter(
        name for seed in range(200) for name, seats in seats_per_stratum(strata, 20, seed).items() if seats
    )
    assert taken.pop(("large",)) == 200
    assert sum(taken.values()) == 200 * 10
    assert max(taken.values()) <= 12
    assert len(taken) > 800


def test_seeds_draw_different_samples() -> None:
    pool = candidates({("a",): 50, ("b",): 50})
    drawn = {draw_stratified_sample(pool, SampleOptions(20, seed)).taken for seed in range(5)}
    assert len(drawn) == 5


@pytest.mark.parametrize(
    ("steps", "bucket"),
    [(0, "0"), (1, "1"), (2, "2"), (3, "3-4"), (4, "3-4"), (5, "5-8"), (33, "33-64"), (None, "")],
)
def test_length_buckets_double(steps: int | None, bucket: str) -> None:
    assert stratum_length_bucket(steps) == bucket


def rows(count: int) -> list[dict[str, Any]]:
    """Runs of four repositories, two models, a tenth of them resolved, 2 to 17 steps."""
    made = []
    for n in range(count):
        said = [{"role": "user", "content": f"fix {n}"}]
        said += [{"role": "assistant", "content": f"step {s} of {n}"} for s in range(2 + n % 16)]
        made.append(
            {
                "instance_id": f"orchard__{('seed', 'apple', 'pear', 'plum')[n % 4]}-{n}",
                "run_id": f"{('gpt-4o', 'qwen-3')[n % 2]}_maxiter_30",
                "resolved": n % 10 == 0,
                "messages": said,
                "patch": "x" * 2000,
            }
        )
    return made


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """400 runs in two Parquet files, and the same in lines."""
    (tmp_path / "parquet").mkdir()
    (tmp_path / "lines").mkdir()
    made = rows(400)
    for part in range(2):
        here = made[part * 200 : part * 200 + 200]
        pq.write_table(
            pa.Table.from_pylist(here), tmp_path / "parquet" / f"{part}.parquet", row_group_size=40
        )
        lines = "".join(json.dumps(row) + "\n" for row in here)
        (tmp_path / "lines" / f"{part}.jsonl").write_text(lines)
    return tmp_path


def _facts(trace: Trace) -> tuple[object, ...]:
    step = trace.contexts[0].steps[0]
    return trace.repository, trace.instance_id, trace.outcome, step.model, step.family


def test_small_columns_say_the_same_as_whole_rows(sets: Path) -> None:
    path = sets / "parquet" / "0.parquet"
    whole, _ = ingest_source(SourceFile(path, "swe_gym", 1))
    seen = list(preview_rows(TableSlice(path, 0, 5, 5), "swe_gym"))
    assert [_facts(trace) for trace in whole] == [_facts(g.trace) for g in seen]
    assert [g.steps for g in seen] == [trace.step_count for trace in whole]
    assert [g.number for g in seen] == list(range(200))
    assert len({g.key for g in seen}) == 200
    texts = {message.content for g in seen for message in g.trace.contexts[0].messages}
    assert texts == {""}


def test_messages_kept_as_one_text_leave_the_length_open(tmp_path: Path) -> None:
    made = [row | {"messages": json.dumps(row["messages"])} for row in rows(4)]
    pq.write_table(pa.Table.from_pylist(made), tmp_path / "x.parquet")
    seen = list(preview_rows(TableSlice(tmp_path / "x.parquet", 0, 1, 1), "swe_gym"))
    assert [(g.trace.repository, g.steps) for g in seen][:2] == [
        ("orchard/seed", None),
        ("orchard/apple", None),
    ]


def take(folder: Path, work: Path, size: int | None, **fields: Any) -> dict[str, Any]:
    sample = SampleOptions(size, fields.pop("seed", 0), fields.pop("by", BY)) if size else None
    return ingest_everything(IngestOptions(order_of([str(folder)]), work, sample=sample, **fields))


def held(work: Path) -> dict[str, tuple[str, str, int]]:
    """The runs a workspace holds by their instance: repository, outcome, steps."""
    workspace = Workspace.open(work)
    ids = frozenset().union(*(workspace.covers("traces", s) for s in workspace.live("traces")))
    return {
        t.instance_id or "": (t.repository or "", t.outcome, t.step_count)
        for t in load_traces(workspace, sorted(ids))
    }


def manifest(work: Path) -> dict[str, Any]:
    return json.loads(max(work.glob("runs/*/sample.json")).read_text())


@pytest.mark.parametrize("kind", ["parquet", "lines"])
def test_a_sample_of_runs_is_taken_in_and_the_manifest_says_from_what(
    sets: Path, tmp_path: Path, kind: str
) -> None:
    record = take(sets / kind, tmp_path / "w", 40)
    assert record["totals"]["left_out"] == {"not in the sample": 360}
    runs = held(tmp_path / "w")
    assert len(runs) == 40
    said = manifest(tmp_path / "w")
    assert (said["candidates"], said["taken"], said["seed"], said["by"]) == (400, 40, 0, list(BY))
    assert sum(s["total"] for s in said["strata"]) == 400
    taken = Counter((s["repository"], s["outcome"]) for s in said["strata"] for _ in range(s["taken"]))
    assert taken == Counter((repository, outcome) for repository, outcome, _ in runs.values())
    for stratum in said["strata"]:
        assert abs(stratum["taken"] - stratum["total"] / 10) < 1


def test_both_kinds_of_files_are_in_the_same_strata(sets: Path, tmp_path: Path) -> None:
    for kind in ("parquet", "lines"):
        take(sets / kind, tmp_path / kind / "w", 40)
    one, two = (manifest(tmp_path / kind / "w")["strata"] for kind in ("parquet", "lines"))
    assert one == two


@pytest.mark.parametrize("kind", ["parquet", "lines"])
def test_the_same_sample_again_reads_nothing_and_another_one_what_it_adds(
    sets: Path, tmp_path: Path, kind: str
) -> None:
    work = tmp_path / "w"
    take(sets / kind, work, 40)
    first = held(work)
    journal = (work / FILE).read_bytes()
    again = take(sets / kind, work, 40)
    assert held(work) == first
    assert (work / FILE).read_bytes() == journal
    assert again["totals"]["left_out"] == {"not in the sample": 360}
    take(sets / kind, work, 60)
    more = held(work)
    assert len(more) == 60
    assert first.keys() <= more.keys()
    assert take(sets / kind, work, None)["totals"]["changes"] == {MORE_WANTED: 2}
    assert len(held(work)) == 400


def test_the_order_and_cut_of_files_do_not_matter(sets: Path, tmp_path: Path) -> None:
    made = rows(400)
    folder = tmp_path / "other"
    folder.mkdir()
    for part in range(4):
        here = made[::-1][part * 100 : part * 100 + 100]
        pq.write_table(pa.Table.from_pylist(here), folder / f"z{part}.parquet", row_group_size=7)
    for name, where in (("a", sets / "parquet"), ("b", folder)):
        take(where, tmp_path / name / "w", 40)
    assert held(tmp_path / "a" / "w") == held(tmp_path / "b" / "w")


def test_a_selection_comes_before_the_sample(sets: Path, tmp_path: Path) -> None:
    select = SelectSettings.model_validate({"outcomes": ["resolved"]})
    totals = take(sets / "parquet", tmp_path / "w", 10, select=select)["totals"]
    assert totals["left_out"] == {"not selected: other outcome": 360, "not in the sample": 30}
    assert {outcome for _, outcome, _ in held(tmp_path / "w").values()} == {"resolved"}


def test_a_remote_set_is_sampled_by_its_small_columns_alone(hub: hub_stub.Hub, tmp_path: Path) -> None:
    noise = random.Random(5)
    made = [row | {"patch": noise.randbytes(20_000).hex()} for row in rows(60)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist(made), path, row_group_size=10)
    hub.put("orchard/runs", {"data/train.parquet": path.read_bytes()})
    sample = SampleOptions(2, 1, ("outcome",))
    order = IngestOptions(SourceOptions(hub=("orchard/runs",)), tmp_path / "w", sample=sample)
    assert ingest_everything(order)["totals"]["left_out"] == {"not in the sample": 58}
    assert len(held(tmp_path / "w")) == 2
    spans = [r.removeprefix("bytes=").split("-") for r in hub.reads("train.parquet")]
    read = sum(int(last) - int(first) + 1 for first, last in spans)
    assert read < 0.6 * path.stat().st_size  # two of six row groups, footers and small columns


def test_subagents_go_with_their_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for number in range(6):
        name = f"s{number}"
        (home / name / "subagents").mkdir(parents=True)
        (home / f"{name}.jsonl").write_text(_chain(name, None))
        (home / name / "subagents" / f"agent-a{number}.jsonl").write_text(_chain(name, f"a{number}"))
    take(home, tmp_path / "w", 2, by=("repository",))
    workspace = Workspace.open(tmp_path / "w")
    ids = frozenset().union(*(workspace.covers("traces", s) for s in workspace.live("traces")))
    traces = load_traces(workspace, sorted(ids))
    mains = {t.trace_id for t in traces if t.kind == "main"}
    assert len(mains) == 2
    assert {t.parent_trace_id for t in traces if t.kind == "side"} == mains
    again = take(home, tmp_path / "w", 2, by=("repository",))
    assert again["totals"]["changes"] == {UNCHANGED: 12}


def _chain(session: str, agent: str | None) -> str:
    common: dict[str, Any] = {"sessionId": session, "timestamp": "2026-01-02T03:04:05Z", "cwd": "/srv/api"}
    if agent:
        common |= {"agentId": agent, "isSidechain": True}
    said = {
        "id": f"m{agent}",
        "role": "assistant",
        "content": [{"type": "text", "text": f"{session} {agent}"}],
    }
    lines = [
        {"type": "user", "uuid": f"u{agent}", "parentUuid": None, "message": {"content": "go"}} | common,
        {"type": "assistant", "uuid": f"a{agent}", "parentUuid": f"u{agent}", "message": said} | common,
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
