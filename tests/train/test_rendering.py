"""Where a row's prompt ends in the text of the chat template."""

from typing import Any

import pytest

from tracemill.train.trl.chat_template import measure_with, render_chat_template

Messages = list[dict[str, Any]]
PROMPT: Messages = [{"role": "user", "content": "fix it"}]
ROW = {
    "prompt": PROMPT,
    "chosen": [{"role": "assistant", "content": "I test."}],
    "rejected": [{"role": "assistant", "content": "I am done."}],
    "tools": [{"function": {"name": "Bash"}}],
}
SIDES = {"chosen": "I test..", "rejected": "I am done.."}


class Words:
    """A tokenizer of letters with a template in Python; `thinks` opens a block of thought where it asks,
    which an answer does not have."""

    def __init__(self, thinks: bool = False) -> None:
        self.thinks = thinks

    def apply_chat_template(
        self, messages: Messages, tools: Any, tokenize: bool, add_generation_prompt: bool = False
    ) -> str:
        assert not tokenize
        if any(message["role"] == "nobody" for message in messages):
            raise RuntimeError("no such role")
        head = "".join(f"[{tool['function']['name']}]" for tool in tools or ())
        said = "".join(f"<{message['role']}>{message['content']}." for message in messages)
        return head + said + ("<assistant>" + "<think>" * self.thinks) * add_generation_prompt

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        return {"input_ids": [ord(letter) for letter in text]}


def test_the_sides_begin_where_the_prompt_ends_and_all_of_it_is_measured() -> None:
    found = render_chat_template(Words(), PROMPT, ROW)
    assert found == ("[Bash]<user>fix it.<assistant>", SIDES, False)
    assert measure_with(Words())(PROMPT, ROW) == len(found.prompt + found.sides["rejected"])
    assert render_chat_template(Words(), PROMPT, ROW | {"tools": []}).prompt == "<user>fix it.<assistant>"


def test_a_template_that_asks_otherwise_than_it_answers_is_noted_and_nothing_is_lost() -> None:
    found = render_chat_template(Words(thinks=True), PROMPT, ROW)
    assert found == ("[Bash]<user>fix it.<assistant>", SIDES, True)


def test_a_row_with_one_completion_is_rendered_and_measured_by_it() -> None:
    row = {"prompt": PROMPT, "completion": ROW["chosen"], "tools": ROW["tools"], "label": True}
    for thinks in (False, True):
        found = render_chat_template(Words(thinks), PROMPT, row)
        assert found == ("[Bash]<user>fix it.<assistant>", {"completion": "I test.."}, thinks)
        assert measure_with(Words(thinks))(PROMPT, row) == len(found.prompt + "I test..")


def test_what_a_template_refuses_is_told_by_its_type_alone() -> None:
    with pytest.raises(ValueError, match=r"^RuntimeError$"):
        measure_with(Words())([{"role": "nobody", "content": "a secret"}], ROW)
