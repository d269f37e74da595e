"""Text that is cut keeps placeholders whole: half of one in a path reads like somebody's name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemill.data_cards.writing.encode_views import ERROR_CHARS
from tracemill.data_cards.writing.encode_views import shorten_view_text as shortened_error
from tracemill.normalize.context_length.cut_plan import shorten_for_cut_plan
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.records.placeholders import head_with_whole_placeholders, tail_with_whole_placeholders

HELD = ("user_3f2ac91d", "<GITHUB_TOKEN_3f2ac91d>", "<IMAGE_12_3f2ac91d>", "REDACTED_EMAIL_3f2ac91d")


@pytest.mark.parametrize("held", HELD)
def test_a_cut_never_falls_into_a_placeholder(held: str) -> None:
    text = f"see /Users/{held}/src"
    start, end = text.index(held), text.index(held) + len(held)
    for most in range(len(text) + 3):
        inside = start < most < end
        assert head_with_whole_placeholders(text, most) == text[: start if inside else most]
        at = max(0, len(text) - most)
        assert tail_with_whole_placeholders(text, most) == text[end if start < at < end else at :]


@given(
    st.lists(st.sampled_from([*HELD, "/Users/", " ", "a", "user_", "<", "é"]), max_size=30),
    st.integers(0, 90),
)
def test_every_cut_is_as_long_as_it_may_be(parts: list[str], most: int) -> None:
    text = "/".join(parts)
    whole = {text[slice(*span)] for span in find_keyed_placeholders(text)}
    for cut in (head_with_whole_placeholders(text, most), tail_with_whole_placeholders(text, most)):
        assert cut in text
        assert len(cut) <= most
        assert {cut[slice(*span)] for span in find_keyed_placeholders(cut)} <= whole


def test_shortened_observations_and_errors_keep_them_whole() -> None:
    for at in range(120):
        text = "x" * at + " /Users/user_3f2ac91d/src " + "y" * 300
        short = shorten_for_cut_plan(text, 120)
        assert "user_3f2ac91d" in short or "user_" not in short, at
        assert int(short.split("... ")[1].split()[0]) == len(text) - (
            len(short) - len("\n[... 206 characters left out ...]\n")
        )
        error = shortened_error("z" * (ERROR_CHARS // 2 - 60) + text + "w" * ERROR_CHARS)
        assert "user_3f2ac91d" in error or "user_" not in error, at
