"""Golden outputs: no output of a versioned part changes unless its version does."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from golden_outputs import (
    COMMAND,
    GOLDEN,
    ROOT,
    STORED,
    complaint_of,
    fault_of,
    labels,
    main,
    outputs,
    parts,
    private_texts,
    read_stored,
    redactors,
    stored_replies,
    stored_traces,
)

from tracemill.ingesters.discover import discover
from tracemill.ingesters.registry import dialects, reader_versions
from tracemill.privacy.redaction.hyperscan_cache import hyperscan_cache_folder

PARTS = parts()
SCRIPT = ROOT / "tests" / "support" / "golden_outputs.py"


@pytest.mark.parametrize("name", PARTS)
def test_the_output_is_the_stored_one(name: str) -> None:
    complaint = complaint_of(PARTS[name], read_stored().get(name), outputs()[name])
    assert complaint is None, complaint


def test_nothing_else_is_stored() -> None:
    assert read_stored().keys() == PARTS.keys()
    assert {name.removeprefix("reader ") for name in PARTS if name.startswith("reader ")} == {
        *reader_versions()
    }


# ---------------------------------------------------------------- what is covered


def test_every_source_and_dialect_is_read() -> None:
    places = (GOLDEN / "inputs", ROOT / "examples" / "sessions")
    assert {file.dialect for place in places for file in discover([place])} >= {*dialects()}
    read = {name: outputs()[f"reader {name}"]["digests"].values() for name in reader_versions()}
    traces = {name: sum(len(each["traces"]) for each in found) for name, found in read.items()}
    steps = {name: sum(each["steps"] for each in found) for name, found in read.items()}
    assert all(traces[name] >= 8 and steps[name] >= 30 for name in reader_versions()), (traces, steps)
    assert sum(traces.values()) >= 110
    assert sum(steps.values()) >= 350
    assert all(each["traces"] for found in read.values() for each in found)


def test_the_stored_traces_are_of_every_source_and_begin_contexts_in_many_ways() -> None:
    traces = stored_traces()
    assert {trace.source for trace in traces} == {*reader_versions()}
    assert len(traces) >= 40
    assert sum(trace.step_count for trace in traces) >= 200
    starts = {context.start for trace in traces for context in trace.contexts}
    assert starts >= {"start", "compaction", "microcompaction", "rewind", "tools_changed", "rewritten"}
    assert {trace.outcome for trace in traces} == {"resolved", "not_resolved", "unknown"}


def test_redaction_finds_something_in_traces_and_in_nearly_every_kind_of_plant() -> None:
    found = outputs()["redaction"]
    texts = private_texts()
    private = [name for name in texts if name.startswith(("secret ", "personal "))]
    redactor = redactors()[0]
    noticed = [name for name in private if any(redactor.redact_text(text)[1] for text in texts[name])]
    assert len(private) >= 330
    assert len(noticed) >= 0.9 * len(private)
    assert len(texts) - len(private) >= 40
    assert texts.keys() <= found["inputs"].keys()
    traces = [each for name, each in found["digests"].items() if name.startswith("trace ")]
    assert sum(each["once"] != each["again"] for each in traces) >= 10
    kinds = Counter(kind for each in traces for kind in each["found"])
    assert kinds.keys() >= {"EMAIL", "IP", "SECRET", "GITHUB_TOKEN"}


def test_every_verdict_and_both_kinds_of_pair_occur() -> None:
    votes, pairs = labels()
    verdicts = Counter(each.verdict for each in votes.values())
    assert verdicts.keys() == {
        "pair", "agrees_with_student", "dead_zone", "order_only", "no_agreement", "too_few_votes",
        "one_family", "student_did_nothing",
    }  # fmt: skip
    assert len({reply.teacher for reply in stored_replies()}) == 5
    assert len({reply.failure for reply in stored_replies()} - {None}) >= 5
    made = [pair for found in pairs.values() for pair in found]
    assert {pair.source for pair in made if pair.label_source == "teachers"} == {*reader_versions()}
    kinds = Counter((pair.label_source, pair.verified) for pair in made)
    assert kinds["hindsight", "lookahead"] >= 10
    assert kinds["teachers", "lookahead"] >= 3
    assert kinds["teachers", "none"] >= 60


def test_each_selection_takes_some_traces_and_leaves_others_out() -> None:
    found = outputs()["selection"]["digests"].values()
    out = Counter(name for each in found for name in each["left out"])
    assert len(out) == 8
    assert all(0 < count < len(found) for count in out.values())
    reasons = {reason for each in found for reason in each["left out"].values()}
    assert len(reasons) == 10


# ---------------------------------------------------------------- what is refused, and what is said


def _with_another_digest(name: str, path: Path) -> str:
    """Write a copy of the outputs in which one digest of a part is another one; return whose."""
    stored = json.loads(json.dumps(outputs()))
    place = sorted(stored[name]["digests"])[0]
    stored[name]["digests"][place] = "another"
    path.write_text(json.dumps(stored))
    return place


@pytest.mark.parametrize("name", PARTS)
def test_a_changed_output_is_not_written_without_another_version(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "outputs.json"
    place = _with_another_digest(name, path)
    before = path.read_text()
    assert main(["--write", "--file", str(path)]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(
        f"not written: {name} gives another output of {place}; raise {PARTS[name].version}"
    )
    assert said.endswith(f"in {PARTS[name].file} and run {COMMAND}")
    assert path.read_text() == before
    assert re.search(
        rf"\b{PARTS[name].version} ?= ?{PARTS[name].number}\b", (ROOT / PARTS[name].file).read_text()
    )
    assert complaint_of(PARTS[name], read_stored(path)[name], outputs()[name]) == said.removeprefix(
        "not written: "
    )


def test_another_version_and_another_input_are_written(tmp_path: Path) -> None:
    path = tmp_path / "outputs.json"
    place = _with_another_digest("vote", path)
    stored = read_stored(path)
    stored["vote"]["version"] -= 1
    path.write_text(json.dumps(stored))
    complaint = complaint_of(PARTS["vote"], stored["vote"], outputs()["vote"])
    now = PARTS["vote"].number
    assert complaint == f"VOTE_VERSION is {now} and {now - 1} is stored; run {COMMAND}"
    assert main(["--write", "--file", str(path)]) == 0
    assert read_stored(path) == outputs()

    _with_another_digest("vote", path)
    stored = read_stored(path)
    stored["vote"]["inputs"][place] = "another"
    path.write_text(json.dumps(stored))
    assert fault_of(PARTS["vote"], stored["vote"], outputs()["vote"]) is None
    complaint = complaint_of(PARTS["vote"], stored["vote"], outputs()["vote"])
    assert complaint == f"vote has other inputs: {place}; run {COMMAND}"
    assert main(["--write", "--file", str(path)]) == 0
    assert read_stored(path) == outputs()


def test_the_outputs_are_the_same_in_every_surrounding(tmp_path: Path) -> None:
    surroundings = [
        {"PYTHONHASHSEED": "1", "HOME": "/home/me", "USER": "mira", "TZ": "Pacific/Auckland", "LANG": "C"},
        {"PYTHONHASHSEED": "2", "HOME": "/nowhere", "HOSTNAME": "seedbank", "TZ": "America/Lima"},
    ]
    path, cache = os.environ.get("PATH", ""), hyperscan_cache_folder().parent  # compiling takes seconds
    files = [tmp_path / f"{place}.json" for place in range(len(surroundings))]
    running = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), "--write", "--file", str(file)],
            env={"PATH": path, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), **given},
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
        for file, given in zip(files, surroundings, strict=True)
    ]
    said = [process.communicate(timeout=240)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    first, second = (file.read_text(encoding="utf-8") for file in files)
    assert first == second
    assert json.loads(first) == outputs()


def test_the_stored_outputs_are_sorted_and_indented() -> None:
    text = STORED.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
