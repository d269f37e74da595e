"""A part of a record that is of another type stops no reader, whatever the format."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from changed_parts import changed
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracemill.ingesters.registry import FORMATS

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "inputs"


class Stored(NamedTuple):
    """A file of the golden inputs: its name, its records, and whether it holds a record a line."""

    name: str
    records: list[Any]
    by_line: bool

    def write(self, folder: Path, records: list[Any]) -> Path:
        path = folder / self.name
        lines = "".join(json.dumps(record) + "\n" for record in records)
        path.write_text(lines if self.by_line else json.dumps(records[0]))
        return path


def stored(form: str, pattern: str) -> list[Stored]:
    """The files of a format, a list of records as one record of a file."""
    paths = sorted((GOLDEN / form).rglob(pattern))
    texts = [(path.name, path.read_text()) for path in paths]
    if pattern.endswith(".jsonl"):
        return [Stored(name, [json.loads(line) for line in text.splitlines()], True) for name, text in texts]
    return [Stored(name, [json.loads(text)], False) for name, text in texts]


FILES = {
    "cline": stored("cline", "api_conversation_history.json"),
    "gemini_cli": stored("gemini_cli", "*.jsonl"),
    "opencode": stored("opencode", "*.json"),
    "otel": stored("otel", "*.jsonl"),
    "pi": stored("pi", "*.jsonl"),
}
VIEWS = stored("cline", "ui_messages.json")
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@QUIET
def test_a_part_of_another_type_stops_nothing(tmp_path: Path, name: str, data: st.DataObject) -> None:
    form = FORMATS.get(name)
    file = data.draw(st.sampled_from(FILES[name]))
    records = data.draw(changed(file.records))
    if name == "cline":
        view = data.draw(st.sampled_from(VIEWS))
        view.write(tmp_path, data.draw(changed(view.records)))
    file_reader(name, form.read)(file.write(tmp_path, records))
    values = records if file.by_line or isinstance(records[0], dict) else records[0]
    objects = [value for value in values if isinstance(value, dict)]
    form.detect_list(objects)
    for record in objects:
        form.detect(record)
        list(form.kinds(record))
