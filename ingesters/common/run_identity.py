"""Tell two runs of one instance apart by what the agent said and by the shape of the other messages.

Datasets reuse instance and run ids for several samples, so these do not identify a run.
"""

from collections.abc import Iterable

from tracemill.records.identity import digest
from tracemill.records.message import Message

FACT_COLUMNS = frozenset(
    (
        *("instance_id", "run_id", "trajectory_id", "traj_id", "id", "repo", "resolved", "target"),
        *("model", "model_name", "model_name_or_path", "llm", "gen_tests_correct", "pred_passes_gen_tests"),
    )
)
"""Small columns of datasets that identify a run, its outcome and its model."""
PREVIEWED = "previewed"
"""The key that marks a message of which only the role was read."""


def run_identity_digest(messages: Iterable[Message]) -> str:
    """Return a digest of the agent's messages and calls, and of role and length of every other text.

    Two runs of one instance with equal digests are one run.
    """
    parts: list[str] = []
    for message in messages:
        if message.role == "assistant":
            parts.append(message.content)
            parts += [f"{call.name}\x1e{call.arguments}" for call in message.tool_calls]
        else:
            parts.append(f"{message.role[0]}{len(message.content)}")
    return digest("\x1f".join(parts))
