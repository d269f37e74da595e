"""What is read is listed, and a file of no format says what it looks like, without a value of it."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.cli.main import app
from tracemill.flows.sources.discovery import find_sources
from tracemill.flows.sources.source_spec import order_of
from tracemill.ingesters.looks_like import looks_like
from tracemill.ingesters.registry import FORMATS
from tracemill.records.errors import SourceError

ROOT = Path(__file__).resolve().parents[2]
OURS = [form for form in FORMATS if form.read.__module__.startswith("tracemill.")]
PRIVATE = "hunter2 at example"


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("form", OURS, ids=lambda form: form.name)
def test_a_format_says_who_writes_it_and_where_its_page_is(form: Any) -> None:
    facts = form.facts
    assert facts is not None
    assert all((facts.of, facts.recognised, facts.prompt))
    assert (ROOT / facts.page).is_file()
    assert len(facts.keys) >= 3


def test_the_list_names_every_format_and_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    app(["formats", "list"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(FORMATS.names())
    assert "  page           docs/formats/swe_gym.md" in lines
    app(["formats", "list", "--json"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert {each["format"]: tuple(each["dialects"]) for each in told} == {
        form.name: form.dialects for form in FORMATS
    }
    assert all(each["of the prompt"] for each in told if each["format"] in {form.name for form in OURS})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"id": 1, "text": PRIVATE, "source": PRIVATE},
            "objects with id (number), text (text), source (text); these are plain texts; "
            "nearest format openhands, by id, source",
        ),
        (
            {"prompt": PRIVATE, "chosen": [], "rejected": [], PRIVATE: None},
            "objects with prompt (text), chosen (list), rejected (list), other (null); "
            "these are preferences (chosen and rejected)",
        ),
        (
            {"uuid": 7, "sessionId": True, "turn": {}},
            "objects with uuid (number), sessionId (flag), turn (object); "
            "nearest format claude_code, by sessionId, uuid",
        ),
        ({"a": 1.5}, "objects with a (number)"),
        ({chr(97 + n): n for n in range(11)}, "objects with a (number), b (number), c (number), d (number), "
         "e (number), f (number), g (number), h (number), and 3 more"),
    ],
)  # fmt: skip
def test_a_file_is_described_by_keys_types_and_the_nearest_format(
    tmp_path: Path, row: Any, said: str
) -> None:
    assert looks_like(write(tmp_path / "rows.jsonl", row)) == said
    (tmp_path / "one.json").write_text(json.dumps([row], indent=1))
    assert looks_like(tmp_path / "one.json") == said


def test_a_table_and_files_without_objects_are_described(tmp_path: Path) -> None:
    pq.write_table(pa.table({"instruction": ["x"], "output": ["y"]}), tmp_path / "t.parquet")
    assert looks_like(tmp_path / "t.parquet") == (
        "objects with instruction (text), output (text); these are Alpaca instructions"
    )
    (tmp_path / "prose.json").write_text(PRIVATE)
    assert looks_like(tmp_path / "prose.json") == "no JSON and no table"
    (tmp_path / "prose.jsonl").write_text(f"{PRIVATE}\n{PRIVATE}\n")
    assert looks_like(tmp_path / "prose.jsonl") == "no line is a JSON object"
    (tmp_path / "list.json").write_text("[1, 2]")
    assert looks_like(tmp_path / "list.json") == "JSON without an object"
    assert looks_like(tmp_path) == ""


def test_a_file_named_outright_is_refused_with_what_it_looks_like(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", {"instruction": PRIVATE, "output": PRIVATE})
    with pytest.raises(SourceError) as caught:
        find_sources(order_of([str(path)]), None)
    assert str(caught.value) == (
        f"{path} is of no known format (objects with instruction (text), output (text); these are Alpaca "
        "instructions); expected a recorded session; see tracemill formats list"
    )


def test_ingest_names_the_first_unknown_files_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "hi"}]
    write(folder / "chat.jsonl", {"messages": said})
    for number in range(22):
        write(folder / f"x{number:02}.jsonl", {"instruction": PRIVATE, "output": PRIVATE})
    found = find_sources(order_of([str(folder)]), None)
    assert sum(bool(each.looks_like) for each in found.unread) == 20
    assert {each.reason for each in found.unread} == {"of no known format"}
    app(["ingest", str(folder), "-w", str(tmp_path / "w")], standalone_mode=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("Alpaca instructions") == 5
    assert "and 17 more of no known format: --json or `formats census` names them" in shown
    assert PRIVATE not in shown
    app(["formats", "census", str(folder)], standalone_mode=False)
    shown = capsys.readouterr().out
    assert shown.count("Alpaca instructions") == 3
    assert "and 19 more: --json names them" in shown
    assert PRIVATE not in shown


def test_outcomes_that_episodes_write_are_named(tmp_path: Path) -> None:
    found = {"resolved": False, "reward": 0.5, "reasons": ["a test fails"]}
    write(tmp_path / "sessions-outcomes.jsonl", {"session": "abc", "task": "t", **found})
    write(tmp_path / "chat.jsonl", {"messages": [{"role": "user", "content": "go"}]})
    (unread,) = find_sources(order_of([str(tmp_path)]), None).unread
    assert unread.reason == "outcomes of sessions: the setting outcomes names it"
