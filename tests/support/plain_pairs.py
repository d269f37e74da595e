"""A pair with the least a pair has: tests set what they are about."""

from typing import Any

from tracemill.records.message import Message
from tracemill.records.pair import DPOPair


def plain_pair(number: int = 0, **fields: Any) -> DPOPair:
    """A hindsight pair of a trace of this number, whose agent finished where it should have run something."""
    given: dict[str, Any] = {
        "step_id": f"trace-{number}:0:0",
        "label_source": "hindsight",
        "state_messages": (),
        "tools": (),
        "chosen": (Message("assistant", "I look first."),),
        "rejected": (Message("assistant", f"Done with {number}."),),
        "chosen_operation": "run",
        "rejected_operation": "finish",
        "source": "openhands",
        "harness": "openhands",
        "presentation": "p1",
        "student_model": None,
        "student_family": "unknown",
    }
    return DPOPair(**given | fields)
