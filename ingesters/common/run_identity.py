"""What tells two runs of one instance apart: what the agent said, and the shape of all else.

Sets reuse instance and run ids for several samples, so these alone name no run.
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
"""Small columns of datasets that tell a run from others, its outcome and its model."""
PREVIEWED = "previewed"
"""The key of a message of which only the role was looked at."""


def run_identity_digest(messages: Iterable[Message]) -> str:
    """Digest of a run: all that the agent wrote and called, and of every other text its role and length.
    Two runs of one instance that agree in all that are one run."""
    parts: list[str] = []
    for message in messages:
        if message.role == "assistant":
            parts.append(message.content)
            parts += [f"{call.name}\x1e{call.arguments}" for call in message.tool_calls]
        else:
            parts.append(f"{message.role[0]}{len(message.content)}")
    return digest("\x1f".join(parts))
