"""What `make demo` shows: pairs that read as preferences, of answers that say that a person wrote them."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from datasets import load_dataset

from tracemill.teachers.core.teacher_settings import HandwrittenTeacherSettings

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., CompletedProcess[str]]


README = (ROOT / "README.md").read_text(encoding="utf-8")
VARIES = (
    (r"tracemill run \S+", "tracemill run ID"),
    (r"next     \S*tracemill ", "next     tracemill "),
    (r"\d{4}\.\d\d\.\d\d", "DATE"),
    (r"\$0\.1\d{3} of", "$COST of"),
    (r"privacy check .*", "privacy check"),
)
"""What differs between two runs of the demo, and what stands for it."""


@pytest.fixture(scope="module")
def said(tracemill: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a run of configs/demo.toml printed, and its workspace."""
    work = tmp_path_factory.mktemp("shown") / "demo-workspace"
    done = tracemill("run", ROOT / "configs" / "demo.toml", "--workspace", work)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, work


@pytest.fixture(scope="module")
def shown(said: tuple[str, Path]) -> dict[str, Any]:
    """The record of that run."""
    [record] = said[1].glob("runs/*/harvest.json")
    return json.loads(record.read_text())


def plain(text: str, work: str = "demo-workspace") -> list[str]:
    """The lines of an output, without what differs between runs."""
    text = text.replace(work, "demo-workspace")
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return [line for line in text.splitlines() if line]


def test_the_readme_shows_the_demo_as_it_is(said: tuple[str, Path]) -> None:
    printed, work = said
    [block] = re.findall(r"```\n\$ make demo\n(.*?)```", README, re.DOTALL)
    assert plain(block) == plain(printed, str(work))
    command = [sys.executable, ROOT / "examples" / "open_release.py", work / "releases" / "demo"]
    pair = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    [block] = re.findall(r"```\n(load_dataset.*?)```", README, re.DOTALL)
    assert plain(block) == plain(pair, str(work))


def test_the_python_of_the_readme_makes_pairs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    [code] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 5
    names = ("careful", "terse", "hasty", "thorough")
    path = ROOT / "examples" / "teachers"
    made_up = [HandwrittenTeacherSettings(model=f"h/{name}", family=name, path=path) for name in names]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tracemill.DEFAULT_TEACHERS", made_up)
    session = next((ROOT / "examples" / "sessions" / "claude_code").glob("*almanac/*.jsonl"))
    (tmp_path / "session.jsonl").write_bytes(session.read_bytes())
    found: dict[str, Any] = {}
    exec(code, found)
    assert [pair.label_source for pair in found["pairs"]] == ["teachers"] * 5


def test_the_demo_makes_the_pairs_that_it_was_written_for(shown: dict[str, Any]) -> None:
    summary, release = shown["summary"], shown["release"]
    assert summary["states"] == 69
    assert summary["verdicts"] == {
        "agrees_with_student": 33,
        "pair": 22,
        "dead_zone": 7,
        "no_agreement": 7,
    }
    assert summary["failures"] == {}
    assert release["rows"] == 33
    kinds = Counter(release["kept"])
    for kind in ("edit over edit", "run_test over finish", "search over read", "run_test over run_test"):
        assert kinds[f"teachers: {kind}"] >= 3, kind
    assert 0.05 < summary["spent_usd"] < 0.5


def test_every_row_and_the_card_say_that_a_person_wrote_the_answers(shown: dict[str, Any]) -> None:
    folder = Path(shown["release"]["path"])
    rows: Any = load_dataset(str(folder), "dpo", split="train")
    paid = [row for row in rows if row["label_source"] == "teachers"]
    assert len(paid) == 22
    assert all(row["simulated"] for row in paid)
    assert all(name.startswith("handwritten/") for row in paid for name in row["teachers"])
    card = (folder / "README.md").read_text()
    assert "rows rest on answers written by hand** (`simulated` is true there): no model answered" in card
    assert "handwritten/careful (written by hand)" in card
    assert "Some pairs rest on answers written by hand." in (folder / "report.html").read_text()


def test_a_session_that_nobody_wrote_answers_for_has_none(tracemill: Run, tmp_path: Path) -> None:
    """Counted as `not_recorded`, free, never another step's answer."""
    lines = (ROOT / "examples/sessions/swe_gym/trajectories.jsonl").read_text().splitlines()
    row = json.loads(lines[0])
    row["instance_id"] = f"{row.get('instance_id', '')}-other"
    row["messages"][1]["content"] += " Now."
    other = tmp_path / "rows.jsonl"
    other.write_text(json.dumps(row) + "\n")
    flags = ("--path", other, "--workspace", tmp_path / "w", "--json")
    done = tracemill("run", ROOT / "configs" / "demo.toml", *flags)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("tracemill: teachers were asked and none answered (")
    summary = json.loads(done.stdout)["summary"]
    assert summary["failures"] == {"not_recorded": summary["asked"]}
    assert (summary["asked"] > 0, summary["spent_usd"]) == (True, 0)
    assert summary["verdicts"] == {"too_few_votes": 8}
