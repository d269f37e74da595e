"""Frozen records made quickly are the records that dataclasses makes; canonical JSON has one spelling."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracemill.records.fast_dataclass import quick_init
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolCall


def test_arguments_defaults_and_errors_are_those_of_the_dataclass() -> None:
    made = Message("tool", "x", (ToolCall("a", "b", "{}"),), name="n")
    assert asdict(made)["tool_calls"] == ({"id": "a", "name": "b", "arguments": "{}"},)
    assert (made.role, made.content, made.tool_call_id, made.name, made.reasoning) == (
        "tool",
        "x",
        None,
        "n",
        None,
    )
    with pytest.raises(TypeError, match="role"):
        Message()  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        made.role = "user"  # type: ignore[misc]


def test_they_compare_hash_copy_and_pickle() -> None:
    made = Message("tool", "x", name="n")
    for other in (Message("tool", "x", name="n"), copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert other == made
        assert hash(other) == hash(made)
    assert replace(made, content="y") == Message("tool", "y", name="n")


def test_a_field_that_needs_more_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Lists:
        items: list[str] = field(default_factory=list)

    with pytest.raises(TypeError, match="items"):
        quick_init(Lists)


PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.just("\ud83d") | st.floats()
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=6,
)
DEEP: object = []
for _ in range(400):  # deeper than orjson goes
    DEEP = [DEEP]


@given(VALUES)
@example(DEEP)
def test_canonical_json_is_that_of_the_standard_library(value: object) -> None:
    def plain() -> str:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    try:
        wanted = plain()
    except TypeError:  # keys of two kinds have no order
        with pytest.raises(TypeError):
            canonical_json(value)
    else:
        assert canonical_json(value) == wanted
