"""An environment executes both sides of a disagreement: files and a test command in a folder of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tracemill.agreement.voting.policy import DEFAULT
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.labeling.dispute_sources import VerifiedSource, dispute_fingerprint, dispute_sources
from tracemill.flows.labeling.label_shard import ShownTrace, make_pairs
from tracemill.flows.preflight import check_teachers
from tracemill.pairs.verified import (
    NO_DIFFERENCE,
    NOT_RESTORED,
    NOT_RUN,
    WORSE,
    NotExecuted,
    StepEnvironment,
    Verification,
)
from tracemill.records.errors import ConfigError
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.table_rows import pairs_from_table, pairs_to_table
from tracemill.records.trace import Context, Step, Trace, TraceState

WRITE = ToolSpec(
    "write_file",
    "Writes a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
)
TEST = "from slug import slug\nassert slug('a b') == 'a-b', slug('a b')\nassert slug('A') == 'a'\n"
GOOD = "def slug(text):\n    return text.lower().replace(' ', '-')\n"
ALSO = "def slug(text):\n    words = text.lower().split()\n    return '-'.join(words)\n"
BAD = "def slug(text):\n    return text.replace(' ', '-')\n"
FLAKY = "import os\n" + GOOD.replace("return", "return '' if int(os.environ['RUN']) % 2 else")


class FolderEnvironment:
    """Restores the files that a session wrote, executes a write, and ends with the test: the fixed policy."""

    name, version = "folder", 3

    def __init__(self) -> None:
        self.executed: list[tuple[str, int]] = []

    def restores(self, state: TraceState) -> bool:
        return "lost" not in state.messages[0].content

    def succeeds(self, state: TraceState, action: Action, run: int) -> bool:
        with TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "test_slug.py").write_text(TEST)
            for message in state.messages:
                self._execute(root, message.tool_calls)
            self._execute(root, action.tool_calls)
            self.executed.append((action.tool_calls[0].arguments, run))
            given = {"RUN": str(run), "PATH": os.environ["PATH"]}
            done = subprocess.run([sys.executable, "test_slug.py"], cwd=root, env=given, capture_output=True)
            return done.returncode == 0

    def _execute(self, root: Path, calls: tuple[ToolCall, ...]) -> None:
        for call in calls:
            given = json.loads(call.arguments)
            if given["path"].startswith("/"):
                raise NotExecuted("a path outside of the folder")
            (root / given["path"]).write_text(given["content"])


def write(content: str, path: str = "slug.py") -> Action:
    call = ToolCall("c1", "write_file", json.dumps({"path": path, "content": content}))
    return Action("", (call,))


def trace_of(own: Action, request: str = "Mend slug: make it lower case.") -> Trace:
    before = write(BAD, "slug.py").to_message()
    result = Message("tool", "written", tool_call_id="c1")
    messages = (
        Message("user", request),
        before,
        result,
        own.to_message(),
        Message("tool", "written", tool_call_id="c1"),
    )
    context = Context(0, messages, (Step(0, 1, "m"), Step(1, 3, "m")), tools=(WRITE,))
    return Trace("t", "generic", "d", "generic", (context,), redaction="r1")


def replies_of(shown: ShownTrace, *actions: Action) -> list[TeacherReply]:
    """One reply of a family each, at the second step."""
    prompt_id = shown.presentations[0].prompt_ids[1]
    return [
        TeacherReply(
            "t:0:1",
            f"k{at}",
            f"teacher{at}",
            f"family{at}",
            0,
            at,
            action=act,
            prompt_id=prompt_id,
            cost_usd=0.25,
        )
        for at, act in enumerate(actions)
    ]


def made(own: Action, *proposals: Action, request: str = "Mend slug.", runs: int = 4):
    environment = FolderEnvironment()
    shown = ShownTrace.of(trace_of(own, request))
    found = make_pairs(
        [shown], replies_of(shown, *proposals), DEFAULT, disputes=[VerifiedSource(environment, runs)]
    )
    return found, environment


def test_the_proposal_that_passes_the_test_becomes_a_pair_with_counts_and_interval() -> None:
    found, environment = made(write(BAD), write(FLAKY), write(GOOD), write("broken("))
    [pair] = [pair for pair in found.pairs if pair.label_source == "verified"]
    assert json.loads(pair.chosen[0].tool_calls[0].arguments)["content"] == GOOD
    assert pair.rejected[0].tool_calls == write(BAD).tool_calls
    assert pair.verified == "execution"
    assert (pair.weight, pair.cost_usd, pair.n_teachers_agreeing) == (1.0, 0.75, 1)
    assert pair.evidence == (
        "folder 3: 4 of 4 against 0 of 4 executions succeed (difference 1.00, 95 %: 0.31 to 1.00)"
    )
    assert len(environment.executed) == 4 * 4  # the agent's action and three proposals, four runs each
    assert {run for _, run in environment.executed} == {0, 1, 2, 3}
    assert (
        found.summary.pairs["verified: create over create"] + found.summary.pairs["verified: edit over edit"]
        == 1
    )
    back = pairs_from_table(pairs_to_table([pair]), lambda _: (pair.state_messages, pair.tools))
    assert back == [pair]


def test_of_a_difference_that_chance_explains_or_that_speaks_for_the_agent_there_is_no_pair() -> None:
    for own, proposal, why in (
        (BAD, FLAKY, NO_DIFFERENCE),  # 2 of 4 against 0 of 4
        (GOOD, ALSO, NO_DIFFERENCE),
        (GOOD, BAD, WORSE),
    ):
        found, _ = made(write(own), write(proposal), write("broken("), write("also broken("))
        assert [pair for pair in found.pairs if pair.label_source == "verified"] == []
        assert found.summary.pair_skips == {f"verified: {why}": 1}
    found, _ = made(write(BAD), write(FLAKY), write("x("), write("y("), runs=20)
    [pair] = [pair for pair in found.pairs if pair.label_source == "verified"]
    assert pair.weight == 0.5
    assert "10 of 20 against 0 of 20" in pair.evidence


def test_a_state_that_is_not_restored_and_an_action_that_is_not_run_say_nothing() -> None:
    found, environment = made(
        write(BAD), write(GOOD), write("x("), write("y("), request="The files are lost."
    )
    assert found.summary.pair_skips == {f"verified: {NOT_RESTORED}": 1}
    assert environment.executed == []
    found, _ = made(write(BAD), write(GOOD, "/etc/slug.py"), write("x("), write("y("))
    assert found.summary.pair_skips == {f"verified: {NOT_RUN}": 1}


def test_where_teachers_agree_nothing_is_executed() -> None:
    found, environment = made(write(BAD, "other.py"), write(GOOD), write(GOOD), write(GOOD))
    assert [pair.label_source for pair in found.pairs] == ["teachers"]
    assert environment.executed == []


def test_intervals_are_those_of_newcombe() -> None:
    seen = Verification(9, 3, 10)  # 9 of 10 against 3 of 10, Newcombe's table II, example b, method 10
    assert (seen.low, seen.high) == pytest.approx((0.1705, 0.8090), abs=1e-4)
    assert Verification(1, 0, 1).low < 0 < Verification(4, 0, 4).low
    assert Verification(0, 4, 4).high == -Verification(4, 0, 4).low


def test_a_configuration_names_an_environment_that_a_package_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(
        None, {"workspace": str(tmp_path), "verified": {"environment": "folder", "runs": 2}}
    )
    with pytest.raises(
        ConfigError, match=r"verified\.environment 'folder' is not known; expected episodes; install"
    ):
        dispute_sources(settings)
    given = {"workspace": str(tmp_path), "preset": "simulated", "verified": {"environment": "folder"}}
    with pytest.raises(ConfigError, match="install the package that gives it"):
        check_teachers(load_settings(None, given | {"budget": {"max_total_usd": 1}}))  # before money is spent
    package = tmp_path / "site" / "folder_env"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "class Folder:\n    name, version = 'folder', 7\n    def restores(self, state): return True\n"
        "    def succeeds(self, state, action, run): return run == 0\nENVIRONMENT = Folder()\n"
    )
    info = tmp_path / "site" / "folder_env-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: folder-env\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tracemill.step_environments]\nfolder = folder_env:ENVIRONMENT\n")
    script = (
        "import sys, json; from pathlib import Path\n"
        "from tracemill.flows.config.run_settings import load_settings\n"
        "from tracemill.flows.labeling.dispute_sources import dispute_fingerprint, dispute_sources\n"
        "verified = {'environment': 'folder', 'runs': 2}\n"
        "s = load_settings(None, {'workspace': sys.argv[1], 'verified': verified})\n"
        "[found] = dispute_sources(s)\n"
        "print(json.dumps([found.name, found.runs, found.environment.version, dispute_fingerprint(s)]))\n"
    )
    paths = {"PYTHONPATH": str(tmp_path / "site"), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "w")],
        env=paths,
        capture_output=True,
        text=True,
        check=True,
    )
    fingerprint = {"verified": [{"environment": "folder", "runs": 2}, 7]}
    assert json.loads(done.stdout) == ["verified", 2, 7, fingerprint]
    assert isinstance(FolderEnvironment(), StepEnvironment)
    assert dispute_fingerprint(load_settings(None, {"workspace": str(tmp_path)})) == {}
