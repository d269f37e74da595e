"""Put the result of an audit on the card of a finished release."""

import re
from pathlib import Path

from tracemill.data_cards.model.audit_sample import Precision
from tracemill.records.errors import ReleaseError
from tracemill.records.storage.atomic_files import write_atomically

CARD = "README.md"
_SECTION = re.compile(r"(<!-- audit -->\n).*?(<!-- /audit -->)", re.DOTALL)


def put_on_card(folder: Path, precision: Precision) -> None:
    """Write the precision into the audit section of the card in `folder`.

    Raises ReleaseError if the card cannot be read or has no such section.
    """
    path = folder / CARD
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReleaseError(
            f"{path} cannot be read ({error.strerror})", "a release made by tracemill"
        ) from error
    text = insert_audit_into_card(text, precision, str(path))
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def insert_audit_into_card(card: str, precision: Precision, name: str) -> str:
    """Return a card with the precision in its audit section.

    `name` names the card in errors. Raises ReleaseError if it has no such section.
    """
    sentence = f"Somebody judged a random sample: {precision.sentence()}.\n"
    text, places = _SECTION.subn(lambda match: match[1] + sentence + match[2], card)
    if not places:
        raise ReleaseError(f"{name} has no section on audits", "the card as tracemill wrote it")
    return text
