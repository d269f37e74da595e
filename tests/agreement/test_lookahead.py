"""What the steps after a vote say of it."""

import json
from typing import Any

from tracemill.agreement.equivalence.lookahead import WITHIN, look_ahead
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.trace import Context, Step, Trace, TraceState


def act(name: str, **arguments: Any) -> Action:
    return Action("", (ToolCall("t", name, json.dumps(arguments)),))


def read(path: str) -> Action:
    return act("Read", file_path=f"/r/{path}")


def edit(new: str) -> Action:
    return act("Edit", file_path="/r/a.py", old_string="x", new_string=new)


def first_of(*done: tuple[Action, bool]) -> TraceState:
    """The first state of a run of these actions; True where one failed."""
    messages, steps = [Message("user", "mend a.py, b.py and c.py, where x stands")], []
    for number, (action, failed) in enumerate(done):
        steps.append(Step(number, len(messages), cwd="/r"))
        call = ToolCall(f"c{number}", action.tool_calls[0].name, action.tool_calls[0].arguments)
        messages.append(Message("assistant", "", (call,)))
        messages.append(Message("tool", "said", tool_call_id=f"c{number}", is_error=failed))
    context = Context(0, tuple(messages), tuple(steps))
    return TraceState(Trace("t", "claude_code", "d", "claude_code", (context,)), context, steps[0])


def told(chosen: Action, *done: tuple[Action, bool]) -> str:
    return look_ahead(first_of(*done), (), chosen)


def test_a_read_the_student_makes_soon_differs_in_order_alone() -> None:
    a, b, c = (read("a.py"), False), (read("b.py"), False), (read("c.py"), False)
    assert told(read("b.py"), a, b) == "order_only"
    assert told(read("b.py"), a, c, b) == "order_only"
    assert told(act("Bash", command="cat /r/b.py"), a, b) == "order_only"
    assert told(read("b.py"), a, c) == ""
    assert told(read("b.py"), a, *[c] * WITHIN, b) == ""


def test_a_read_after_a_change_is_another_one() -> None:
    assert told(read("b.py"), (read("a.py"), False), (edit("y"), False), (read("b.py"), False)) == ""


def test_actions_that_change_something_are_never_order_only() -> None:
    assert told(edit("y"), (read("a.py"), False), (edit("y"), False)) == ""
    assert told(read("b.py"), (edit("y"), False), (read("b.py"), False)) == ""


def test_the_student_did_it_itself_after_it_failed() -> None:
    assert told(edit("y"), (edit("z"), True), (edit("y"), False)) == "confirmed"
    assert told(edit("y"), (edit("z"), True), (edit("y"), True)) == ""
    assert told(edit("y"), (edit("z"), False), (edit("y"), False)) == ""
    assert told(edit("y"), (edit("z"), True), (edit("w"), False)) == ""
    assert told(read("b.py"), (read("d.py"), True), (read("b.py"), False)) == "confirmed"
