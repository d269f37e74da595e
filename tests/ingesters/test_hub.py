"""Datasets of the Hub and files behind URLs, read over real HTTP from a Hub on loopback."""

import io
import json
import random
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hub_stub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.flows.sources.discovery import find_sources
from tracemill.flows.sources.shard_plan import plan_sources
from tracemill.flows.sources.source_spec import SourceOptions, order_of
from tracemill.ingesters.discover import discover
from tracemill.ingesters.looks_like import looks_like
from tracemill.ingesters.read_source import SourceReading, ingest_source
from tracemill.ingesters.reading.hub_datasets import HubSpec, resolve_hub_dataset
from tracemill.ingesters.reading.parquet_rows import TableSlice, read_parquet_layout, read_parquet_slice
from tracemill.ingesters.reading.remote_files import printable_url, remote_file_version
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import SourceError


def row(number: int, **fields: Any) -> dict[str, Any]:
    said = [
        ("user", f"fix {number}"),
        ("assistant", f"looking at {number}"),
        ("user", "and?"),
        ("assistant", "ok"),
    ]
    return {
        "instance_id": f"orchard__seedbank-{number}",
        "run_id": "gpt-4o-2024-08-06_maxiter_30",
        "resolved": number % 3 == 0,
        "messages": [{"role": role, "content": text} for role, text in said],
        **fields,
    }


def table(rows: list[dict[str, Any]], group: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=group)
    return sink.getvalue()


CARD = b"""---
license: mit
configs:
- config_name: default
  data_files:
  - split: train.raw
    path: data/train.raw-*
---
"""


def sampled_set(hub: hub_stub.Hub, repo: str = "orchard/runs", wide: int = 0, **fields: Any) -> str:
    """Three Parquet shards of 20 rows in groups of 5; `wide` random bytes a row."""
    noise = random.Random(3)
    files = {
        f"data/train.raw-0000{shard}-of-00003.parquet": table(
            [row(shard * 20 + n, patch=noise.randbytes(wide).hex()) for n in range(20)], 5
        )
        for shard in range(3)
    }
    return hub.put(repo, files | {"README.md": CARD}, card={"license": "mit"}, **fields)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a/b", ("a/b", None, None, None)),
        ("a/b@v1.0", ("a/b", "v1.0", None, None)),
        ("a/b@refs/convert/parquet:train.raw", ("a/b", "refs/convert/parquet", None, "train.raw")),
        ("SWE-Gym/x_y.z:tool", ("SWE-Gym/x_y.z", None, None, "tool")),
        ("a/b@main:en-de/test", ("a/b", "main", "en-de", "test")),
        ("a/b@main:logs/of-2026/", ("a/b", "main", None, None)),
    ],
)
def test_names_of_datasets(text: str, parts: tuple[str | None, ...]) -> None:
    spec = HubSpec.parse(text)
    assert (spec.repo, spec.revision, spec.config, spec.split) == parts
    assert str(spec) == text


@pytest.mark.parametrize("text", ["a", "a/b/c", "a/b@", "a/b:", "a b/c", "https://h.co/a/b", "a/b:x/y/z"])
def test_what_names_no_dataset(text: str) -> None:
    with pytest.raises(SourceError, match="is not the name of a dataset"):
        HubSpec.parse(text)


def test_a_dataset_is_resolved_to_a_commit_its_split_files_and_licence(hub: hub_stub.Hub) -> None:
    first = sampled_set(hub)
    hub.put("orchard/runs", {"notes.txt": b"later"})
    found = resolve_hub_dataset(HubSpec.parse(f"orchard/runs@{first}"))
    assert (found.commit, found.split, found.licence) == (first, "train.raw", "mit")
    assert [file.url.rsplit("/", 1)[1] for file in found.files] == [
        f"train.raw-0000{n}-of-00003.parquet" for n in range(3)
    ]
    newest = resolve_hub_dataset(HubSpec.parse("orchard/runs:train.raw"))
    assert newest.commit == hub.repos["orchard/runs"].refs["main"] != first
    assert [file.tag for file in newest.files] == [file.tag for file in found.files]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("orchard/none", "there is no dataset orchard/none on the Hub, or it is private"),
        ("orchard/secret", "there is no dataset orchard/secret on the Hub, or it is private"),
        ("orchard/runs@v9", "orchard/runs@v9 has no such revision"),
        ("orchard/runs:test", "has no split 'test'; expected train.raw"),
        ("orchard/runs:other/train.raw", "BuilderConfig 'other' not found"),
        ("orchard/gated", "orchard/gated is gated"),
        ("orchard/two", "has several splits; expected train | test; name it as orchard/two:SPLIT"),
        ("orchard/empty", "orchard/empty cannot be opened"),
    ],
)
def test_datasets_that_cannot_be_read_are_one_line_each(hub: hub_stub.Hub, name: str, said: str) -> None:
    sampled_set(hub)
    sampled_set(hub, "orchard/gated", gated=True)
    sampled_set(hub, "orchard/secret", private=True)
    both = {f"data/{s}-00000-of-00001.parquet": table([row(1)], 1) for s in ("train", "test")}
    hub.put("orchard/two", both)
    hub.put("orchard/empty", {"README.md": b"nothing here"})
    with pytest.raises(SourceError) as caught:
        find_sources(order_of(hub=[name]), None)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("status", [401, 500])
def test_a_hub_that_answers_badly_is_one_line(hub: hub_stub.Hub, status: int) -> None:
    sampled_set(hub)
    hub.faults = lambda request: status
    with pytest.raises(SourceError, match=f"orchard/runs answers {status}|there is no dataset orchard/runs"):
        find_sources(order_of(hub=["orchard/runs"]), None)


def test_a_token_opens_private_and_gated_sets_and_is_told_nowhere(
    hub: hub_stub.Hub, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub_stub.TOKEN)
    for name in ("private", "gated"):
        sampled_set(hub, f"orchard/{name}", **{name: True})
        plan = plan_sources(order_of(hub=[f"orchard/{name}"]), 16)
        traces, report = ingest_source(plan.fresh[0])
        assert (len(traces), report.error) == (20, None)
        assert hub_stub.TOKEN not in repr((plan, [asdict(trace) for trace in traces], report))
    monkeypatch.setenv("HF_TOKEN", "hf_wrongwrongwrong")
    with pytest.raises(SourceError) as caught:
        find_sources(order_of(hub=["orchard/private"]), None)
    assert "hf_wrong" not in str(caught.value) + "".join(capfd.readouterr())


def test_a_gated_folder_of_logs_is_read_as_what_each_file_is(
    hub: hub_stub.Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = Path(__file__).resolve().parents[1] / "golden" / "inputs"
    logs = [next((golden / name).rglob("*.jsonl")) for name in ("claude_code", "codex", "gemini_cli", "pi")]
    files = {f"transcripts/{place}.jsonl": log.read_bytes() for place, log in enumerate(logs)}
    turns = [{"turn_id": n, "session_id": "s", "turn_type": "user_prompt", "repo_id": "r"} for n in range(3)]
    files["conversations.parquet"] = table(turns, 3)
    hub.put("orchard/chat", files, gated=True, card={"license": "odc-by"})
    with pytest.raises(SourceError, match="orchard/chat is gated"):
        find_sources(order_of(hub=["orchard/chat:transcripts/"]), None)
    monkeypatch.setenv("HF_TOKEN", hub_stub.TOKEN)
    found = find_sources(order_of(hub=["orchard/chat:transcripts/"]), None)
    read = [ingest_source(source) for source in found.files.values()]
    assert [report.dialect for _, report in read] == ["claude_code", "codex", "gemini_cli", "pi"]
    assert all(traces and traces[0].licence == "odc-by" for traces, _ in read)
    assert found.datasets == [
        f"hf://datasets/orchard/chat@{hub.repos['orchard/chat'].refs['main']}:transcripts/"
    ]


def test_turns_of_swe_chat_are_named_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "conversations.jsonl"
    path.write_text('{"turn_id": 1, "session_id": "s", "turn_type": "user_prompt", "content": "x"}\n')
    (source,) = discover([path])
    assert source.dialect is None
    assert "these are turns of SWE-chat" in looks_like(path)


def test_rows_are_read_by_row_group_and_only_the_bytes_of_it(hub: hub_stub.Hub) -> None:
    commit = sampled_set(hub, wide=40_000)
    plan = plan_sources(order_of(hub=["orchard/runs"]), 1e-9)
    assert len(plan.fresh) == 12
    assert plan.files == 3
    assert plan.datasets == (f"hf://datasets/orchard/runs@{commit}:train.raw",)
    part = plan.fresh[6]
    assert part.part == TableSlice(part.url, 2, 3, 4)
    hub.log.clear()
    traces, report = ingest_source(part)
    assert [trace.instance_id for trace in traces] == [f"orchard__seedbank-{n}" for n in range(30, 35)]
    name = "train.raw-00001-of-00003.parquet"
    assert {trace.origin for trace in traces} == {f"hf://datasets/orchard/runs@{commit}/data/{name}"}
    assert {(trace.licence, trace.repository) for trace in traces} == {("mit", "orchard/seedbank")}
    assert (report.traces, report.states, report.error) == (5, 10, None)
    ranges = [tuple(map(int, r.removeprefix("bytes=").split("-"))) for r in hub.reads(name)]
    _footer, group = sorted(ranges, reverse=True)
    data = hub.repos["orchard/runs"].commits[commit][f"data/{name}"]
    meta = pq.ParquetFile(io.BytesIO(data)).metadata
    columns = [meta.row_group(2).column(at) for at in range(meta.num_columns)]
    first = min(column.dictionary_page_offset or column.data_page_offset for column in columns)
    assert group == (first, first + sum(column.total_compressed_size for column in columns) - 1)


def test_json_columns_come_back_as_what_they_hold(tmp_path: Path) -> None:
    from datasets import Dataset, Features, Json, List, Value

    message = {"role": Value("string"), "content": Value("string"), "tool_calls": List(Json())}
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    other = {
        "id": "d",
        "type": "function",
        "function": {"name": "view", "arguments": '{"path": "a"}'},
        "n": 1,
    }
    messages = [
        {"role": "user", "content": "go", "tool_calls": None},
        {"role": "assistant", "content": "", "tool_calls": [call, other]},
    ]
    rows = [{"instance_id": "a__b-1", "messages": messages, "tools": [{"name": "bash", "x": 1}]}]
    features = Features({"instance_id": Value("string"), "messages": List(message), "tools": List(Json())})
    path = tmp_path / "x.parquet"
    Dataset.from_list(rows, features=features).to_parquet(path)
    assert list(read_parquet_slice(TableSlice(path, 0, 1, 1))) == rows
    traces, _ = ingest_source(SourceFile(path, "swe_gym", 1))
    calls = traces[0].contexts[0].messages[1].tool_calls
    assert [(c.name, c.arguments) for c in calls] == [
        ("bash", '{"command": "ls"}'),
        ("view", '{"path": "a"}'),
    ]


def test_files_that_are_no_tables_are_fetched_and_read_as_what_they_are(hub: hub_stub.Hub) -> None:
    session = [
        {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"content": "go"}},
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "sessionId": "s",
            "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "hi"}]},
        },
    ]
    lines = "".join(json.dumps(record) + "\n" for record in session).encode()
    commit = hub.put("orchard/sessions", {"a/one.jsonl": lines, "b/two.jsonl": b'{"a": 1}\n'})
    plan = plan_sources(order_of(hub=["orchard/sessions"]), 16)
    assert hub.reads(".jsonl") == []
    one, two = (ingest_source(file) for file in plan.fresh)
    assert [trace.source for trace in one[0]] == ["claude_code"]
    assert one[0][0].origin == f"hf://datasets/orchard/sessions@{commit}/a/one.jsonl" == one[1].path
    assert two[0] == []
    assert "of no known format" in str(two[1].error)


def test_a_set_of_other_columns_is_one_line(hub: hub_stub.Hub) -> None:
    hub.put("orchard/prices", {"data/train.parquet": table([{"fruit": "pear", "usd": 2}], 1)})
    with pytest.raises(SourceError, match=r"train\.parquet holds no sessions \(columns: fruit, usd\)"):
        plan_sources(order_of(hub=["orchard/prices"]), 16)


def test_a_row_group_that_cannot_be_fetched_is_a_report(hub: hub_stub.Hub) -> None:
    sampled_set(hub)
    plan = plan_sources(order_of(hub=["orchard/runs"]), 16)
    hub.faults = lambda request: 403 if request.path.endswith("00001-of-00003.parquet") else 0
    errors = [ingest_source(file)[1].error for file in plan.fresh]
    assert [error is None for error in errors] == [True, False, True]
    assert "00001-of-00003.parquet" in str(errors[1])


class TestUrls:
    """A Parquet file behind a URL."""

    def test_is_read_by_ranges(self, hub: hub_stub.Hub) -> None:
        hub.plain["/sets/x.parquet"] = table([row(n) for n in range(20)], 5)
        url = f"{hub.url}/sets/x.parquet?token=s3cret"
        plan = plan_sources(order_of([url]), 1e-9)
        assert [file.name for file in plan.fresh] == [f"{hub.url}/sets/x.parquet"] * 4
        traces, report = ingest_source(plan.fresh[3])
        assert [trace.instance_id for trace in traces] == [f"orchard__seedbank-{n}" for n in range(15, 20)]
        assert traces[0].origin == report.path == f"{hub.url}/sets/x.parquet"
        written = [asdict(trace) for trace in traces]
        assert "s3cret" not in repr((written, report, order_of([url]).names()))
        assert all(r.range for r in hub.log if r.method == "GET")

    def test_is_tried_again_where_the_fault_may_pass(self, hub: hub_stub.Hub) -> None:
        hub.plain["/x.parquet"] = table([row(1)], 1)
        failing = iter([503, 0, 429, 503, 0])
        hub.faults = lambda request: next(failing, 0)
        assert read_parquet_layout(f"{hub.url}/x.parquet").groups[0].rows == 1
        assert [r.status for r in hub.log] == [503, 200, 429, 503, 206]

    @pytest.mark.parametrize(
        ("path", "said"),
        [
            ("/none.parquet", "none.parquet does not exist"),
            ("/closed.parquet", "closed.parquet answers 403"),
            ("/text.parquet", "text.parquet cannot be read: ArrowInvalid; expected a Parquet file"),
            ("/cut.parquet", "cut.parquet cannot be read: ArrowInvalid; expected a Parquet file"),
        ],
    )
    def test_what_cannot_be_read_is_one_line(self, hub: hub_stub.Hub, path: str, said: str) -> None:
        whole = table([row(1)], 1)
        hub.plain |= {"/text.parquet": b"x" * 99, "/cut.parquet": whole[:-20], "/closed.parquet": whole}
        hub.faults = lambda request: 403 if "closed" in request.path else 0
        with pytest.raises(SourceError) as caught:
            plan_sources(order_of([hub.url + path]), 16)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_wants_a_server_that_gives_ranges(self, hub: hub_stub.Hub) -> None:
        hub.plain["/x.parquet"] = table([row(1)], 1)
        hub.ranges = False
        with pytest.raises(SourceError, match="does not support byte ranges"):
            remote_file_version(f"{hub.url}/x.parquet")
        with pytest.raises(SourceError, match="does not support byte ranges"):
            read_parquet_layout(f"{hub.url}/x.parquet")

    def test_nobody_there_is_one_line(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with pytest.raises(SourceError, match=rf"127\.0\.0\.1:{port}/x\.parquet cannot be reached"):
            find_sources(order_of([f"http://127.0.0.1:{port}/x.parquet"]), None)

    def test_names_hold_no_secret(self) -> None:
        assert printable_url("https://me:pw@h.co:8/a/b.parquet?sig=x#y") == "https://h.co:8/a/b.parquet"


def test_a_forced_format_that_does_not_fit_is_one_line(hub: hub_stub.Hub, tmp_path: Path) -> None:
    hub.plain["/x.parquet"] = table([{"fruit": "pear"}], 1)
    with pytest.raises(SourceError, match="--format swe_gym was given"):
        plan_sources(order_of([f"{hub.url}/x.parquet"], format="swe_gym"), 16)
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n')
    with pytest.raises(SourceError) as caught:
        find_sources(order_of([str(path)], format="swe_gym"), None)
    assert "2 row without messages, trajectory or conversations" in str(caught.value)
    with pytest.raises(SourceError, match="there is no format 'aider'; expected claude_code"):
        find_sources(SourceOptions(((path, None),), format="aider"), None)
    path.write_text(json.dumps({"messages": row(1)["messages"], "extra": 1}) + "\n")
    found = find_sources(order_of([str(path)], format="swe_gym"), None)
    assert [file.dialect for file in found.files.values()] == ["swe_gym"]
    assert len(list(SourceReading(SourceFile(path, "swe_gym", 9)))) == 1
