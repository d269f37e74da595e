"""Why a call of Codex failed, read behind what Codex puts in front of an output."""

import json

import pytest

from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.pairs.failure_causes import FailureCause, find_failure_cause
from tracemill.records.message import Message, ToolCall

MISSING = "cat: a.py: No such file or directory\n"
EXITED = "Wall time: 0.1 seconds\nProcess exited with code 1\n"
FRAMES = (
    f"Chunk ID: 1a2b3c\n{EXITED}Original token count: 9\nOutput:\n",
    f"Command: /bin/zsh -lc 'cat a.py\ncat b.py'\nChunk ID: 1\n{EXITED}Output:\n",
    "Exit code: 1\nWall time: 0 seconds\nOutput:\n",
)


def _cause(name: str, text: str, operation: Operation) -> FailureCause | None:
    call = ToolCall("c1", name, json.dumps({"cmd": "cat a.py"}))
    result = Message("tool", text, (), "c1", None, True, "exit_code")
    return find_failure_cause(call, result, operation, harness_for("codex"))


@pytest.mark.parametrize("frame", FRAMES)
def test_a_shell_mistake_is_found_behind_the_frame(frame: str) -> None:
    assert _cause("exec_command", frame + MISSING, Operation.READ) == FailureCause.COMMAND
    assert _cause("exec_command", frame + "1 failed, 2 passed\n", Operation.RUN_TEST) is None


def test_a_shell_mistake_is_found_in_the_json_of_older_versions() -> None:
    text = json.dumps({"output": MISSING, "metadata": {"exit_code": 1, "duration_seconds": 0.1}})
    assert _cause("shell", text, Operation.READ) == FailureCause.COMMAND


def test_a_patch_that_cannot_be_placed_names_text_that_is_absent() -> None:
    text = "apply_patch verification failed: Failed to find expected lines in /src/a.py:\n    x = 1"
    assert _cause("apply_patch", text, Operation.EDIT) == FailureCause.TEXT_ABSENT
