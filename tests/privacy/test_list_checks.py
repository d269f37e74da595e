"""Entries of the user's lists that would do their harm late are refused at once, in one line."""

from pathlib import Path

import pytest

from tracemill.flows.admission.privacy_settings import PrivacySettings
from tracemill.flows.admission.redaction_setup import make_redactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.preflight import run_preflight
from tracemill.privacy.core.check_user_lists import check_entries
from tracemill.records.errors import ConfigError

SLOW = "takes more than 2 s on lines of 2,000 characters"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("e", "would redact far too much: 41% of an ordinary text"),
        ("re:.", "would redact far too much: 100%"),
        (r"re:\w+", "would redact far too much: 97%"),
        (r"re:\s", "would redact far too much: 17%"),
        ("EU", "is shorter than 3 characters"),
        ("re:(", "holds an invalid pattern 're:(': missing )"),
        ("re:x*", "matches the empty text"),
        (r"re:\b", "matches places without a character"),
        (r"re:(?=falcon)|(?<=o)", "matches places without a character"),
        (" ", "holds an empty entry"),
        ("tool_calls", "fits 'tool_calls', which stands in every release"),
        (r"re:\d+", "fits '0', which stands in every release"),
    ],
)
def test_an_entry_to_redact_that_cannot_be_used(entry: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_entries(["Project Falcon", entry], [], "0 tool_calls")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Falcon" not in str(caught.value)


@pytest.mark.parametrize("pattern", [r"re:(a+)+$", r"re:(x|y|xy)*z!"])
def test_a_pattern_that_never_ends_is_found_out_in_its_own_process(pattern: str) -> None:
    with pytest.raises(ConfigError, match=SLOW):
        check_entries([], [pattern], "")


@pytest.mark.parametrize(
    "entry",
    [
        "Project Falcon",
        "seedling",
        r"re:CUST-\d{4}",
        r"re:(?i)acme[- _]?corp",
        r"re:\w+@acme\.com",
        r"re:.*secret.*",
        r"re:(?:[a-z]+-)+\d{6}",
        r"re:[0-9a-f]{32}",
        r"re:\bEU\b",
        "EMAIL",
    ],
)
def test_what_people_list_can_be_used_in_a_run(entry: str) -> None:
    assert make_redactor(None, PrivacySettings(redact=(entry,))).known.redact


def test_what_lets_everything_through_is_no_entry_to_allow() -> None:
    check_entries([], ["e", "dev", r"re:.*@acme\.com"], "user")
    with pytest.raises(ConfigError, match="would let nearly everything through: 99%"):
        check_entries([], ["re:.+"], "")


@pytest.mark.parametrize("word", ["chosen", "user", "content_fingerprint", "terminal"])
def test_words_of_tracemills_own_are_known_before_a_run(tmp_path: Path, word: str) -> None:
    settings = RunSettings.model_validate(
        {
            "workspace": tmp_path / "w",
            "privacy": {"redact": [word]},
            "sources": {"paths": [tmp_path / "none"]},
        }
    )
    with pytest.raises(ConfigError, match=f"'{word}', which stands in every release: its publish gate"):
        run_preflight(settings)
    assert not (tmp_path / "w").exists()
