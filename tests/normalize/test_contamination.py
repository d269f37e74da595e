"""Sessions made of a benchmark are found by name, by what they print, and by its statements."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sibling_runs import bash, run

from tracemill.normalize.contamination import Benchmarks, load_benchmarks
from tracemill.records.errors import NormalizeError
from tracemill.records.trace import Trace

STATEMENT = (
    "The lantern flickers whenever the brightness slider is dragged past ninety percent and the window has "
    "been minimised at least once, which makes the colour picker show a stale hue until the next redraw."
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def session(back: str = "ok", task: str = "Fix it.", **changes: str | None) -> Trace:
    base = replace(run("a", "resolved", bash("cat notes", back), task=task), instance_id=None)
    return replace(base, **{"repository": "lantern/glow", **changes})


@pytest.fixture(scope="module")
def listed() -> Benchmarks:
    return load_benchmarks()


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (session(), ""),
        (session(repository="django/django"), "repository of SWE-bench"),
        (session(repository="https://github.com/Django/Django.git"), "repository of SWE-bench"),
        (session(repository="other/django"), ""),
        (session(repository=None, instance_id="sveltejs__svelte-10266"), "instance of Multi-SWE-bench"),
        (session(instance_id="lantern__glow-12"), ""),
        (session("runs/django__django-11099/log"), "instance id of SWE-bench in its text"),
        (session("see psf__requests-1234_2.json"), "instance id of SWE-bench in its text"),
        (session("lantern__glow-12 and __init__-3"), ""),
        (session("cli/cli:pr-88 was merged"), "instance id of Multi-SWE-bench in its text"),
        (session("django/django-5 is a folder"), ""),
        (session("# terminal-bench-canary GUID 1"), "mark of terminal-bench"),
        (session(task="Work on django__django-11099."), "instance id of SWE-bench in its text"),
    ],
)
def test_what_is_known_without_any_file(listed: Benchmarks, trace: Trace, said: str) -> None:
    assert listed.overlap(trace) == said


@pytest.fixture
def local(tmp_path: Path) -> Benchmarks:
    file = tmp_path / "house.jsonl"
    row = {"instance_id": "plain-name", "repo": "house/door", "base_commit": COMMIT}
    file.write_text(json.dumps({**row, "problem_statement": STATEMENT, "patch": "x"}) + "\n", "utf-8")
    return load_benchmarks([file])


def test_a_local_file_adds_instances_repositories_commits_and_statements(local: Benchmarks) -> None:
    assert local.overlap(session(instance_id="Plain-Name")) == "instance of house"
    assert local.overlap(session(repository="House/Door")) == "repository of house"
    assert local.overlap(session(f"commit {COMMIT}\n")) == "base commit of house in its text"
    assert local.overlap(session(f"blob {COMMIT}00")) == ""
    assert local.overlap(session(task=f"Please look: {STATEMENT.upper()}")) == "problem statement of house"
    words = STATEMENT.split()
    assert local.overlap(session(" ".join(words[:26]))) == "problem statement of house"
    assert local.overlap(session(" ".join(words[:14]))) == ""
    assert local.overlap(session(" ".join(reversed(words)))) == ""


@pytest.mark.parametrize("text", [None, "", "{}\n", "[1]\n", '{"instance_id": 3}\n', "no json\n"])
def test_a_file_that_is_no_benchmark_is_one_line(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "x.jsonl"
    if text is not None:
        file.write_text(text, "utf-8")
    with pytest.raises(
        NormalizeError, match=r"benchmark .*x\.jsonl (cannot be read|has no instances)"
    ) as caught:
        load_benchmarks([file])
    assert "\n" not in str(caught.value)
