"""Make rows of hints: the same failed action after its context, and after its context with a hint."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tracemill.harnesses.presentation import present_all
from tracemill.records.message import Message
from tracemill.records.trace import MessageView, Trace
from tracemill.train.hints.error_sites import ErrorSite, error_sites
from tracemill.train.hints.hint_text import Hint, write_hint

HintRow = dict[str, Any]
WriteHint = Callable[[ErrorSite, Message | None], Hint | None]
"""Returns the hint for a site and the action agreed on there (None if there is none), or None for no hint."""


def template_hint(site: ErrorSite, agreed: Message | None) -> Hint:
    """Return a hint from the templates."""
    return Hint(write_hint(site.error_kind, site.error_text, agreed))


def build_hint_rows(
    traces: Iterable[Trace],
    agreed: Mapping[str, Message] | None = None,
    write: WriteHint = template_hint,
) -> Iterator[HintRow]:
    """Yield a row for each failed action of these traces that gets a hint.

    `agreed` maps step ids to the actions that teachers agreed on. A row has `step_id`, `error_kind`, `hint`
    with its `writer`, `fallback` and `simulated` (`Hint`), `prompt` and `hinted_prompt` (conversations as TRL
    takes them), `completion` (the failed action) and `tools`. The hint ends the last message if that is the
    user's, else it is a message of the user's.
    """
    known = agreed or {}
    for trace in traces:
        shown = present_all(trace)
        for site in error_sites(trace):
            state = site.state
            step_id = str(state.step_id)
            hint = write(site, known.get(step_id))
            if hint is None or not hint.text:
                continue
            what = shown[state.context.index]
            prompt = [
                conversation_message(each) for each in MessageView(what.messages, what.cuts[state.step.index])
            ]
            yield {
                "step_id": step_id,
                "error_kind": site.error_kind,
                "hint": hint.text,
                "writer": hint.writer,
                "fallback": hint.fallback,
                "simulated": hint.simulated,
                "prompt": prompt,
                "hinted_prompt": add_hint(prompt, hint.text),
                "completion": [conversation_message(state.student_action.to_message())],
                "tools": [each.to_wire() for each in what.tools],
            }


def add_hint(prompt: list[dict[str, Any]], hint: str) -> list[dict[str, Any]]:
    """Return the prompt with the hint as its end."""
    if prompt and prompt[-1]["role"] == "user":
        last = prompt[-1]
        return [*prompt[:-1], {**last, "content": f"{last['content']}\n\n{hint}"}]
    return [*prompt, {"role": "user", "content": hint}]


def conversation_message(message: Message) -> dict[str, Any]:
    """Return a message as chat templates take it: arguments of calls are objects where they can be read."""
    wire = message.to_wire()
    for made, call in zip(wire.get("tool_calls", ()), message.tool_calls, strict=True):
        made["function"]["arguments"] = call.parsed() if call.parsed() is not None else call.arguments
    return wire
