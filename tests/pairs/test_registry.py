"""A label source of an installed package: its pairs are made, shown and released beside ours."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from installed_packages import called_with, install_module, refusal_with

from tracemill.records.errors import ConfigError
from tracemill.records.label_source import LABEL_SOURCES, source_in_words, sources_of_traces

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
GROUP = "tracemill.label_sources"
OF_SESSIONS = ["user", "revised_edit", "repeated_read"]
STATUS = """
import json
from collections import Counter

from tracemill.pairs.step_pair import pair_at
from tracemill.records.label_source import LabelSource
from tracemill.records.message import Action, ToolCall

COMMAND = "git status --short --branch"


def pairs_of(trace):
    pairs, reasons = [], Counter()
    for state in trace.states():
        calls = state.student_action.tool_calls
        if calls and calls[0].name == "Edit":
            better = ToolCall("status_1", "Bash", json.dumps({"command": COMMAND}))
            chosen = Action("I look at what has changed first.", (better,))
            pairs.append(pair_at(state, "status", chosen, "an edit without a look at the tree"))
        else:
            reasons["edits nothing"] += 1
    return pairs, reasons


SOURCE = LabelSource(
    "status",
    means="a rule wants a look at the tree | before an edit",
    better="A rule says {to} do this first:",
    pairs_of_trace=pairs_of,
)
"""
BROKEN = {
    "another name": ("SOURCE = LabelSource(", "SOURCE = LabelSource('other')\nlabel = LabelSource("),
    "no source": ("SOURCE = LabelSource(", "SOURCE = 3\nlabel = LabelSource("),
}


def _packages(folder: Path, module: str = STATUS, name: str = "status_rule") -> Path:
    return install_module(folder, name, module, {GROUP: {"status": f"{name}:SOURCE"}})


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _packages(tmp_path_factory.mktemp("packages") / "site")


@pytest.fixture(scope="module")
def work(
    packages: Path, prefect_server: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict]:
    work = tmp_path_factory.mktemp("status") / "w"
    done = called_with(packages, "run", "--claude-code", SESSIONS, "-w", work, "--json", **prefect_server)
    assert done.returncode == 0, done.stderr[-2000:]
    return work, json.loads(done.stdout)


def _rows(released: Path, config: str) -> list[dict]:
    tables = sorted((released / "data" / config).glob("*.parquet"))
    return [row for path in tables for row in pq.read_table(path).to_pylist()]


def test_its_pairs_are_made_and_released(work: tuple[Path, dict]) -> None:
    record = work[1]
    made, summary = record["summary"]["pairs"], record["summary"]
    assert sum(count for kind, count in made.items() if kind.startswith("status: ")) > 2
    assert summary["pair_skips"]["status: edits nothing"] > 10
    assert not any("status" in reason for reason in summary["hindsight_skips"])
    released = Path(record["release"]["path"])
    rows = _rows(released, "dpo")
    ours = [row for row in rows if row["label_source"] == "status"]
    assert ours
    assert {row["evidence"] for row in ours} == {"an edit without a look at the tree"}
    assert {row["rejected_operation"] for row in ours} == {"edit"}
    assert {row["label_source"] for row in rows} == {"status", "hindsight"}
    card = (released / "README.md").read_text()
    assert f"| status | {len(ours)} | a rule wants a look at the tree \\| before an edit |" in card
    told = [row["privileged_context"] for row in _rows(released, "hints")]
    assert sum("A rule says {to} do this first:" in text for text in told) == len(ours)


def test_they_can_be_shown_alone(packages: Path, work: tuple[Path, dict]) -> None:
    shown = called_with(packages, "status", "-w", work[0], "--source", "status", "--pairs", "2")
    assert shown.stdout.count("status: an edit without a look at the tree") == 2
    said = refusal_with(packages, "status", "-w", work[0], "--source", "luck")
    assert "there is no label source 'luck'; expected teachers, hindsight, user, revised_edit, " in said


def test_what_it_made_stays_readable_without_it(work: tuple[Path, dict], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shown = called_with(tmp_path / "empty", "status", "-w", work[0], "--pairs", "100")
    assert "status: an edit without a look at the tree" in shown.stdout
    config = tmp_path / "run.toml"
    config.write_text(f"workspace = '{work[0]}'\n[release]\nname = 'without'\n")
    done = called_with(tmp_path / "empty", "release", "write", config, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    card = next((work[0] / "releases" / "without").glob("*/README.md")).read_text()
    assert "| status | " in card


def test_pairs_that_are_not_its_own_are_one_line(tmp_path: Path) -> None:
    given = ("ingest", SESSIONS, "--workspace", tmp_path / "w")
    assert called_with(_packages(tmp_path / "none"), *given).returncode == 0
    for number, (old, new) in enumerate(
        [
            ('pair_at(state, "status"', 'pair_at(state, "hindsight"'),
            ("return pairs, reasons", "return pairs * 2, reasons"),
        ]
    ):
        assert old in STATUS
        packages = _packages(tmp_path / str(number), STATUS.replace(old, new))
        said = refusal_with(packages, "label", "-w", tmp_path / "w")
        assert "the label source 'status' makes pairs that are not its own; expected pairs of its" in said


def test_two_of_one_name_and_what_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    call = ("status", "--source", "status")
    taken = install_module(tmp_path / "a", "mine", STATUS, {GROUP: {"siblings": "mine:SOURCE"}})
    assert "mine and tracemill both give a label source 'siblings'" in refusal_with(taken, *call)
    both = _packages(_packages(tmp_path / "b", name="one"), name="two")
    assert "two and one both give a label source 'status'" in refusal_with(both, *call)
    broken = _packages(tmp_path / "c", "import nowhere")
    said = refusal_with(broken, *call)
    assert "the label source 'status' of status_rule cannot be imported (ModuleNotFoundError)" in said
    for name, (old, new) in BROKEN.items():
        packages = _packages(tmp_path / name, STATUS.replace(old, new))
        said = refusal_with(packages, *call)
        assert (
            "the label source 'status' of a package is not valid; expected a LabelSource of that name" in said
        ), name


def test_ours_have_their_names_and_words() -> None:
    assert [LABEL_SOURCES.get(name).name for name in LABEL_SOURCES.names()] == [
        "teachers",
        "hindsight",
        *OF_SESSIONS,
        "judge",
        "verified",
        "siblings",
    ]
    assert [source.name for source in sources_of_traces()] == ["hindsight", *OF_SESSIONS]
    assert all(source.means and source.better for source in LABEL_SOURCES)
    assert source_in_words("gone").means == ""
    with pytest.raises(ConfigError, match="there is no label source 'gone'"):
        LABEL_SOURCES.get("gone")
