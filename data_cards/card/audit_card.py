"""The card of a finished release tells what an audit found."""

import re
from pathlib import Path

from tracemill.data_cards.model.audit_sample import Precision
from tracemill.records.errors import ReleaseError
from tracemill.records.storage.atomic_files import writing

CARD = "README.md"
_SECTION = re.compile(r"(<!-- audit -->\n).*?(<!-- /audit -->)", re.DOTALL)


def put_on_card(folder: Path, precision: Precision) -> None:
    """Writes the figure into the section on audits of the card in `folder`. Raises ReleaseError where it has
    none."""
    path = folder / CARD
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReleaseError(
            f"{path} cannot be read ({error.strerror})", "a release made by tracemill"
        ) from error
    text = insert_audit_into_card(text, precision, str(path))
    with writing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def insert_audit_into_card(card: str, precision: Precision, called: str) -> str:
    """The text of a card with the figure. Raises ReleaseError where it has no section on audits."""
    said = f"Somebody judged a random sample: {precision.sentence()}.\n"
    text, places = _SECTION.subn(lambda match: match[1] + said + match[2], card)
    if not places:
        raise ReleaseError(f"{called} has no section on audits", "the card as tracemill wrote it")
    return text
