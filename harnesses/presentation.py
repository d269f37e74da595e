"""What a model is shown of a session: one list of messages a context, of which every step is a prefix."""

from dataclasses import dataclass

from tracemill.harnesses.agents.registry import Harness, harness_for
from tracemill.harnesses.inferred_tools import infer_context_tools
from tracemill.harnesses.valid_messages import Builder
from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, MessageView, Trace

PRESENTATION_VERSION = 1
"""Raise it when a model is shown another text for the same context: what is stored is presented anew then.
Answers to prompts whose text stays as it was are kept."""
_ASKED_AS = "p1"
"""What stands for the presentation in identities of prompts and answers. Those hold all of the text, so
that it is never raised."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """A context as it is shown, and where in it every step stands.

    At `context.steps[i]` a model sees `messages[: cuts[i]]` and is offered `tools`; `prompt_ids[i]` is
    the identity of that. `kind` says what is recorded and what is a stand-in, such as
    `system=stand_in,tools=stand_in+inferred`; `context=approximate` or `context=lost` stands behind where
    the prefixes are not known to be complete.
    """

    messages: tuple[Message, ...]
    cuts: tuple[int, ...]
    tools: tuple[ToolSpec, ...]
    version: str
    kind: str
    prompt_ids: tuple[str, ...]

    @property
    def label(self) -> str:
        """Version and kind in one word, as rows carry it."""
        return f"p{PRESENTATION_VERSION}/{self.kind}"

    def prompt(self, ordinal: int) -> MessageView:
        """What is shown at `context.steps[ordinal]`, without copying it."""
        return MessageView(self.messages, self.cuts[ordinal])


def present_context(trace: Trace, context: Context) -> Presentation:
    """What models are shown of a context: the recorded system prompt and tools, else stand-ins.

    The messages are such as chat completions APIs accept (see `valid_messages`). Reasoning is never
    shown. Equal input gives equal bytes. The time is linear in the messages of the trace. Redaction is
    the caller's to see to.
    """
    harness = harness_for(trace.harness, trace.harness_version)
    return _present(context, harness, infer_context_tools(trace, context, harness))


def present_all(trace: Trace) -> dict[int, Presentation]:
    """What models are shown of each context that has a step, by the context's index; the same as one by
    one, the session's tools found once."""
    harness = harness_for(trace.harness, trace.harness_version)
    acting = [context for context in trace.contexts if context.steps]
    bare = next((context for context in acting if not context.tools), None)
    shared = infer_context_tools(trace, bare, harness) if bare is not None else ()
    return {
        context.index: _present(
            context, harness, infer_context_tools(trace, context, harness) if context.tools else shared
        )
        for context in acting
    }


def _present(context: Context, harness: Harness, tools: tuple[ToolSpec, ...]) -> Presentation:
    recorded = bool(context.messages) and context.messages[0].role == "system"
    builder = Builder()
    if not recorded:
        builder.add(Message("system", _stand_in(harness, tools)))
    cut_at = {step.cut: ordinal for ordinal, step in enumerate(context.steps)}
    cuts = [0] * len(context.steps)
    for position, message in enumerate(context.messages):
        if position in cut_at:
            cuts[cut_at[position]] = builder.ready()
        builder.add(message)
    messages = tuple(builder.out)
    return Presentation(
        messages,
        tuple(cuts),
        tools,
        _ASKED_AS,
        _kind(context, recorded, tools),
        _prompt_ids(messages, tuple(cuts), tools),
    )


def _kind(context: Context, recorded: bool, tools: tuple[ToolSpec, ...]) -> str:
    kind = f"system={'recorded' if recorded else 'stand_in'},tools={_origins(tools)}"
    known = context.fidelity.context
    return kind if known == "complete" else f"{kind},context={known}"


def _stand_in(harness: Harness, tools: tuple[ToolSpec, ...]) -> str:
    return harness.text_system if harness.text_system and not tools else harness.system


def _origins(tools: tuple[ToolSpec, ...]) -> str:
    present_origins = {tool.origin for tool in tools}
    order = ("recorded", "stand_in", "inferred")
    return "+".join(origin for origin in order if origin in present_origins) or "none"


def _prompt_ids(
    messages: tuple[Message, ...], cuts: tuple[int, ...], tools: tuple[ToolSpec, ...]
) -> tuple[str, ...]:
    last = max(cuts, default=0)
    chain = [prompt_root(tools, _ASKED_AS)]
    for message in messages[:last]:
        chain.append(extend_prompt(chain[-1], message))
    return tuple(chain[cut] for cut in cuts)
