"""On which rung of the ladder the actions behind a vote are one, and what that says."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

from tracemill.agreement.equivalence.ladder import Keys
from tracemill.agreement.equivalence.same_effect import is_same_effect
from tracemill.harnesses.core.vocabulary import Operation

Agreed = Literal["exact", "canonical", "effect", "intent", "class"]
MEANING: Mapping[Agreed, str] = {
    "exact": "the same action, its calls to the letter",
    "canonical": "the same action, spelled otherwise",
    "effect": "the same effect by other calls",
    "intent": "the same operation and target, to other effects",
    "class": "an end of the work, or a question to the user, worded otherwise",
}
_ENDS = frozenset({str(Operation.FINISH), str(Operation.ASK)})


def find_agreement_level(actions: Sequence[Keys]) -> Agreed:
    """The lowest rung on which all these actions are one; they are known to agree on some. Ends and questions
    that are not the same to the letter agree by class."""
    if len({keys.exact for keys in actions}) == 1:
        return "exact"
    if all(keys.cls in _ENDS for keys in actions):
        return "class"
    if len({keys.canonical for keys in actions}) == 1:
        return "canonical"
    return (
        "effect" if all(is_same_effect(one, other) for one, other in combinations(actions, 2)) else "intent"
    )
