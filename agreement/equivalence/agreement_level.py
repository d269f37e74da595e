"""Find the equivalence level on which the backers of a vote agree."""

from collections.abc import Mapping, Sequence
from typing import Literal

from tracemill.agreement.equivalence.ladder import ENDING_CLASSES, ActionKeys

AgreementLevel = Literal["exact", "canonical", "effect", "intent", "class"]
MEANING: Mapping[AgreementLevel, str] = {
    "exact": "the same action, its calls to the letter",
    "canonical": "the same action, spelled otherwise",
    "effect": "the same effect by other calls",
    "intent": "the same operation and target, to other effects",
    "class": "an end of the work, or a question to the user, worded otherwise",
}


def find_agreement_level(actions: Sequence[ActionKeys]) -> AgreementLevel:
    """Return the lowest level on which these actions, which agree on some, are one.

    Ends and questions that are not equal verbatim agree by class.
    """
    if len({keys.exact for keys in actions}) == 1:
        return "exact"
    if all(keys.action_class in ENDING_CLASSES for keys in actions):
        return "class"
    if len({keys.canonical for keys in actions}) == 1:
        return "canonical"
    return "effect" if len({keys.effect for keys in actions}) == 1 else "intent"
