"""Texts with numbered lines are read without the numbers, and keep them."""

import pytest

from tracemill.privacy.core.line_prefixes import unnumber_lines
from tracemill.privacy.redaction.redactor import Redactor

PASSWORD = "Vq7!mwTz#4Lk"
NETRC = f"machine git.example.org\n  login deploy\n  password {PASSWORD}\nmachine b.example.org"


def number(text: str, form: str, first: int = 1) -> str:
    return "\n".join(form % (at, line) for at, line in enumerate(text.split("\n"), first))


def unnumbered(text: str) -> str:
    plain = unnumber_lines(text)
    assert plain is not None
    return plain.text


@pytest.mark.parametrize("form", ["%6d\t%s", "%6d→%s", "%d→%s", "%d\t%s"])
@pytest.mark.parametrize("first", [1, 240])
def test_a_secret_of_several_lines_is_found_between_the_numbers(form: str, first: int) -> None:
    text = number(NETRC, form, first)
    redacted = Redactor(key=b"key").redact_text(text)[0]
    assert PASSWORD not in redacted
    assert unnumbered(text) == f"\n{NETRC}"
    assert unnumbered(redacted).count("\n") == NETRC.count("\n") + 1


def test_a_header_and_lines_without_a_number_are_read_too() -> None:
    head, last = "Here is `cat -n` of .netrc:", f"token={PASSWORD}9aZ"
    text = "\n".join((head, number(NETRC, "%6d\t%s"), last))
    assert unnumbered(text) == "\n".join(("", head, NETRC, last))
    assert PASSWORD not in Redactor(key=b"key").redact_text(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "id\tname\tpassword\n1\tmira\tVq7!mwTz#4Lk\n2\tjon\tp8$Rt2!wQz",  # a column of a table
        "     1\ta\n     3\tb",
        "     1\ta\nb\nc\nd",
        "1.5\ta\n2.5\tb",
        "",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    assert unnumber_lines(text) is None


def test_the_cells_of_a_table_with_ids_are_found() -> None:
    text = "id\tname\tpassword\n1\tmira\tVq7!mwTz#4Lk\n2\tjon\tp8$Rt2!wQz"
    redacted = Redactor(key=b"key").redact_text(text)[0]
    assert "Vq7!mwTz#4Lk" not in redacted
    assert "p8$Rt2!wQz" not in redacted
