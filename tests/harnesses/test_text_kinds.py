"""What a text without a call says, and what the agent has done that ends with it."""

import pytest

from tracemill.harnesses.operations import find_operation_and_target
from tracemill.harnesses.text_intents import find_text_intent
from tracemill.records.message import Action

KINDS = {
    "announcement": (
        "Let me read b.py first.",
        "I'll look at the tests in tests/test_a.py next.",
        "Now let me run the tests.",
        "I see the cause. Let me fix it:",
        "The parser never sees the flag. To be sure, I need to check how it is called.",
        "Great! Now I'm going to install what is missing.",
        "I'll help you with the parser. First, let me explore the folder\u2026",
        "Only one caller is left \u2014 let me look at it.",
        "Now update the parser:",
        "It is not fixed yet. Let me try another way.",
        "<think>\nIs that all?\n</think>\nLet me open the log.",
    ),
    "answer": (
        "",
        "Done.",
        "Done. Let me know if you want the tests too.",
        "I have fixed the parser. Let me summarise what changed.",
        "The fix is in. Let me explain: the flag was never read.",
        "All tests pass. Now let me push it.",
        "I'll wait for your answer.",
        "I'll add the tests once you have confirmed the name.",
        "I'll open a pull request if you like.",
        "Noted: I'll use tabs from now on.",
        "I need to know which file you mean.",
        "Run this to start it:\n```bash\nmake start\n```",
        "```python\nprint(1)\n```",
        "```bash\nmake start\n```\nThen open the page.",
        "Two steps are left:\n- read a.py\n- run the tests\n\nLet me run the tests.",
        "Let's go with the first one.",
        "The answer is 4. Let me check the other one.",
        "Let me look at it. The loop begins at 1, so the first row is lost, and that is all there is to it.",
        "The request timed out because no index was there; I added one.",
        "Error: a.py is not there.",
        "There is nothing that I could not do.",
    ),
    "question": (
        "Which file do you mean?",
        "Let me check. Is it a.py?",
        "I cannot do that. Shall I ask (again?)",
    ),
    "refusal": (
        "I cannot help with that.",
        "I'm sorry, but I can\u2019t assist with this request.",
        "Unfortunately, I am not able to continue.",
        "I give up.",
    ),
    "command": ("```bash\npytest\n```", "Let me run the tests:\n\n```sh\npytest\n```\n"),
    "error": (
        "Error: rate limited",
        "Internal error occurred.",
        "API Error: 529 overloaded",
        "429 Too Many Requests",
        "Request timed out.",
        '{"type": "error", "error": {"type": "overloaded_error"}}',
        "acme.RateLimitError: quota is used up",
    ),
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in KINDS.items() for text in texts])
def test_what_a_text_says(kind: str, text: str) -> None:
    assert find_text_intent(text) == kind


def test_a_long_text_that_ends_with_an_announcement_is_an_answer() -> None:
    long = "The loop begins at 1 and the first row is lost. " * 13
    assert find_text_intent(f"{long}Let me look at b.py.") == "answer"
    assert find_text_intent(f"{long[:300]}. Let me look at b.py.") == "announcement"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Done.", ("finish", None)),
        ("Which file?", ("ask", None)),
        ("I cannot help with that.", ("finish", "refused")),
        ("Let me run the tests.", ("finish", "announced")),
        ("```bash\npytest\n```", ("finish", "announced")),
        ("Error: rate limited", ("other", None)),
    ],
)
def test_how_a_text_ends_the_work(text: str, expected: tuple[str, str | None]) -> None:
    assert find_operation_and_target(Action(text), "claude_code") == expected
    assert find_operation_and_target(Action(text), "mini_swe_agent")[0] in ("other", "run_test")
