"""Formats of installed packages: found, read, named in errors; and what a broken package stops."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from installed_packages import install, jsonl

from tracemill.flows.sources.shard_plan import UNCHANGED
from tracemill.flows.sources.watermarks import READ_OTHERWISE

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
OURS = ("claude_code", "mini_swe_agent", "swe_agent", "codex", "gemini_cli", "pi", "sts", "cline")
OURS += ("cursor", "opencode", "inspect_ai", "atif", "otel", "openhands", "swe_gym")
SESSION = EXAMPLES / "claude_code" / "-home-dev-almanac" / "e8d79f49-af6d-414c-8a6f-188a424e617b.jsonl"
NOTES = jsonl(
    {"notes": 1, "session": "a"},
    {"user": "Count the beds."},
    {"does": "I count four of them, and one is empty."},
    {"user": "Which one?"},
    {"does": "The one by the gate."},
)
FORMAT = """
from pathlib import Path

from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.format import SessionFormat
from tracemill.ingesters.reading.json_reading import iter_json_lines
from tracemill.records.identity import make_trace_id
from tracemill.records.message import Message
from tracemill.records.trace import Trace

Path(__file__).with_name("imported").touch()


def detect(record):
    return "notes" if "notes" in record else None


def read(path, report):
    context = GrowingContext()
    for _, line in iter_json_lines(path, report):
        if "user" in line:
            context.add_message(Message("user", line["user"]))
        elif "does" in line:
            context.add_action(Message("assistant", line["does"]), StepMetadata())
    trace_id, whole = make_trace_id("notes", path.name), (context.finish(0, ()),)
    yield from count_traces_in_report([Trace(trace_id, "notes", report.dialect, "notes", whole)], report)


FORMAT = SessionFormat("notes", {version}, ("notes",), detect, read)
"""
BROKEN = """
from pathlib import Path

Path(__file__).with_name("imported").touch()
raise RuntimeError("secret of a session")
"""
POINT = {"tracemill.ingesters": {"notes": "notes_agent.format:FORMAT"}}
READ = """
import json, sys
from pathlib import Path
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.reading.source_file import SourceFile

found = []
for path in map(Path, sys.argv[1:]):
    dialect = detect(path)
    traces, report = ingest_source(SourceFile(path, dialect, path.stat().st_size))
    found.append([dialect, len(traces), report.states, report.error])
print(json.dumps(found))
"""

Call = Callable[..., CompletedProcess[str]]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def call(site: Path, tmp_path: Path) -> Call:
    """Runs Python with the packages of `site`: `call("ingest", ...)` the command line, `call(READ, ...)` a
    script."""

    def run(first: str, *arguments: object) -> CompletedProcess[str]:
        code = first if "\n" in first else "from tracemill.cli.main import main; main()"
        argv = [str(each) for each in arguments] if "\n" in first else [first, *map(str, arguments)]
        env = os.environ | {"PYTHONPATH": str(site)}
        command = [sys.executable, "-c", code, *argv]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, check=False)

    return run


def write_format(site: Path, text: str, package: str = "notes-agent") -> Path:
    """Install a package with this module; gives the file that importing it writes."""
    files = {"notes_agent/__init__.py": "", "notes_agent/format.py": text}
    install(site, package, files, POINT)
    return site / "notes_agent" / "imported"


def sessions(folder: Path) -> Path:
    """A folder with a session of ours and one of the package."""
    folder.mkdir()
    shutil.copy(SESSION, folder / "ours.jsonl")
    (folder / "notes.jsonl").write_text(NOTES)
    return folder


def record_of(done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal_of(done: CompletedProcess[str]) -> str:
    """The one line on stderr of a command that refused."""
    assert (done.returncode, done.stdout) == (2, ""), done
    [line] = done.stderr.splitlines()
    return line


def test_a_format_of_a_package_is_detected_and_read_beside_ours(
    call: Call, site: Path, tmp_path: Path
) -> None:
    write_format(site, FORMAT.replace("{version}", "1"))
    record = record_of(call("ingest", sessions(tmp_path / "s"), "--workspace", tmp_path / "w", "--json"))
    read = {Path(file["path"]).name: file for file in record["files"]}
    assert {name: file["format"] for name, file in read.items()} == {
        "notes.jsonl": "notes",
        "ours.jsonl": "claude_code",
    }
    assert (read["notes.jsonl"]["traces"], read["notes.jsonl"]["states"]) == (1, 2)
    assert (read["ours.jsonl"]["traces"], read["ours.jsonl"]["states"]) == (1, 12)
    assert (record["totals"]["traces"], record["totals"]["unread"]) == (2, {})
    assert sorted(path.name for path in (tmp_path / "w" / "traces").glob("source=*")) == [
        "source=claude_code",
        "source=notes",
    ]


def test_only_another_version_of_a_package_s_format_reads_its_files_again(
    call: Call, site: Path, tmp_path: Path
) -> None:
    write_format(site, FORMAT.replace("{version}", "1"))
    flags = (sessions(tmp_path / "s"), "--workspace", tmp_path / "w", "--json")
    record_of(call("ingest", *flags))
    again = record_of(call("ingest", *flags))["totals"]
    (site / "notes_agent" / "format.py").write_text(FORMAT.replace("{version}", "22"))
    raised = record_of(call("ingest", *flags))["totals"]
    assert again["changes"] == {UNCHANGED: 2}
    assert raised["changes"] == {READ_OTHERWISE: 1, UNCHANGED: 1}
    assert again["traces"] == raised["traces"] == 2


def test_errors_name_the_formats_of_packages_too(call: Call, site: Path, tmp_path: Path) -> None:
    write_format(site, FORMAT.replace("{version}", "1"))
    folder = sessions(tmp_path / "s")
    out = ("--workspace", tmp_path / "w")
    line = refusal_of(call("ingest", folder, *out, "--format", "nots"))
    assert line.startswith("tracemill: there is no format 'nots'; expected claude_code | ")
    assert line.endswith(" | swe_gym | notes")
    (tmp_path / "empty").mkdir()
    line = refusal_of(call("ingest", tmp_path / "empty", *out))
    assert line.endswith(f"expected sessions of {', '.join(OURS)}, notes")
    forced = record_of(call("ingest", folder / "notes.jsonl", *out, "--format", "notes", "--json"))
    assert [file["format"] for file in forced["files"]] == ["notes"]


def test_two_packages_that_give_one_name_are_one_line(call: Call, site: Path, tmp_path: Path) -> None:
    write_format(site, FORMAT.replace("{version}", "1"))
    install(site, "other-notes", {}, {"tracemill.ingesters": {"notes": "other_notes:FORMAT"}})
    line = refusal_of(call("ingest", sessions(tmp_path / "s"), "--workspace", tmp_path / "w"))
    assert line == (
        "tracemill: other-notes and notes-agent both give a session format 'notes'; "
        "expected unique names; remove one of the packages"
    )
    assert not (tmp_path / "w").exists()


def test_a_package_that_gives_a_name_of_ours_is_one_line(call: Call, site: Path, tmp_path: Path) -> None:
    install(site, "other-gym", {}, {"tracemill.ingesters": {"swe_gym": "other_gym:FORMAT"}})
    line = refusal_of(call("ingest", sessions(tmp_path / "s"), "--workspace", tmp_path / "w"))
    assert line == (
        "tracemill: other-gym and tracemill both give a session format 'swe_gym'; expected unique names; "
        "remove one of the packages"
    )


def test_a_package_that_cannot_be_imported_is_one_line_and_the_others_are_read(
    call: Call, site: Path, tmp_path: Path
) -> None:
    write_format(site, FORMAT.replace("{version}", "1"))
    folder = sessions(tmp_path / "s")
    flags = (folder, "--workspace", tmp_path / "w", "--json")
    assert record_of(call("ingest", *flags))["totals"]["traces"] == 2
    (site / "notes_agent" / "format.py").write_text(BROKEN)
    line = (
        "tracemill: the session format 'notes' of notes-agent cannot be imported (RuntimeError); "
        "expected a value at notes_agent.format:FORMAT; update or remove that package; "
        "its sessions are not read\n"
    )
    again = call("ingest", *flags)
    assert (again.returncode, again.stderr) == (0, line)
    totals = json.loads(again.stdout)["totals"]
    # What was read of it before stays.
    assert (totals["traces"], totals["unread"]) == (2, {"of no known format": 1})
    (site / "notes_agent" / "format.py").write_text(FORMAT.replace("{version}", "1"))
    assert record_of(call("ingest", *flags))["totals"]["changes"] == {UNCHANGED: 2}
    (site / "notes_agent" / "format.py").write_text(BROKEN)
    fresh = call("ingest", folder, "--workspace", tmp_path / "new", "--json")
    assert (fresh.returncode, fresh.stderr) == (0, line)
    totals = json.loads(fresh.stdout)["totals"]
    assert (totals["traces"], totals["unread"]) == (1, {"of no known format": 1})
    forced = call("ingest", folder, "--workspace", tmp_path / "w", "--format", "notes")
    assert (forced.returncode, forced.stderr.startswith(line)) == (2, True)
    assert "there is no format 'notes'; expected claude_code | " in forced.stderr


@pytest.mark.parametrize(
    "given", ["FORMAT = 'notes'", "FORMAT = SessionFormat('diary', 1, ('notes',), detect, read)"]
)
def test_a_package_that_gives_something_else_is_one_line(
    call: Call, site: Path, tmp_path: Path, given: str
) -> None:
    write_format(site, FORMAT.replace("{version}", "1") + given)
    line = refusal_of(call("ingest", sessions(tmp_path / "s"), "--workspace", tmp_path / "w"))
    assert line == (
        "tracemill: the session format 'notes' of a package is not valid; "
        "expected a SessionFormat of that name; update or remove the package that gives it"
    )
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("text", [FORMAT.replace("{version}", "1"), BROKEN])
def test_files_of_ours_are_detected_and_read_without_importing_a_package(
    call: Call, site: Path, tmp_path: Path, text: str
) -> None:
    imported = write_format(site, text)
    files = sorted(path for path in EXAMPLES.rglob("*.jsonl"))
    found = record_of(call(READ, *files))
    assert [each[:3] for each in found] == [
        ["claude_code", 1, 12],
        ["claude_code", 1, 12],
        ["claude_code", 1, 10],
        ["openhands_eval_v0", 2, 19],
        ["swe_gym", 2, 16],
    ]
    assert {each[3] for each in found} == {None}
    assert not imported.exists()
    call(READ, sessions(tmp_path / "s") / "notes.jsonl")
    assert imported.exists()
