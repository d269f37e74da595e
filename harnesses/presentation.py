"""Present a session to a model: one list of messages a context, with every step as a prefix."""

from dataclasses import dataclass

from tracemill.harnesses.agents.registry import Harness, harness_for
from tracemill.harnesses.inferred_tools import infer_context_tools
from tracemill.harnesses.valid_messages import MessageBuilder
from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, Trace

PRESENTATION_VERSION = 2
"""Raise it when a model is shown another text for the same context: stored contexts are presented again.
Answers to prompts with unchanged text are kept."""
_PROMPT_ID_VERSION = "p1"
"""The presentation in ids of prompts and answers; it never changes, since those ids hash all of the text."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """A context as models are shown it, with the cut of every step.

    At `context.steps[i]` a model sees `messages[: cuts[i]]` and is offered `tools`; `prompt_ids[i]` is the id
    of that prompt. `kind` names recorded parts and stand-ins, such as
    `system=stand_in,tools=stand_in+inferred`. It ends with `later_system=user` where later system messages
    are shown as the user's, and with `context=approximate` or `context=lost` where the prefixes are not known
    to be complete.
    """

    messages: tuple[Message, ...]
    cuts: tuple[int, ...]
    tools: tuple[ToolSpec, ...]
    version: str
    kind: str
    prompt_ids: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return version and kind in one word, as rows carry it."""
        return f"p{PRESENTATION_VERSION}/{self.kind}"


def present_context(trace: Trace, context: Context) -> Presentation:
    """Return what models are shown of a context: the recorded system prompt and tools, else stand-ins.

    The messages are valid for chat completions APIs (see `valid_messages`), without reasoning. Equal input
    gives equal bytes, in time linear in the messages of the trace. The caller is responsible for redaction.
    """
    harness = harness_for(trace.harness, trace.harness_version)
    return _present(context, harness, infer_context_tools(trace, context, harness))


def present_all(trace: Trace) -> dict[int, Presentation]:
    """Return what models are shown of each context with a step, by the context's index.

    The result equals that of `present_context`; the session's tools are inferred once.
    """
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
    builder = MessageBuilder()
    if not recorded:
        acts_in_text = bool(harness.text_system) and not tools
        builder.add(Message("system", harness.text_system if acts_in_text else harness.system))
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
        _PROMPT_ID_VERSION,
        _kind(context, recorded, tools),
        _prompt_ids(messages, tuple(cuts), tools),
    )


def _kind(context: Context, recorded: bool, tools: tuple[ToolSpec, ...]) -> str:
    kind = f"system={'recorded' if recorded else 'stand_in'},tools={_origins(tools)}"
    if any(message.role == "system" and message.content.strip() for message in context.messages[recorded:]):
        kind += ",later_system=user"
    completeness = context.fidelity.context
    return kind if completeness == "complete" else f"{kind},context={completeness}"


def _origins(tools: tuple[ToolSpec, ...]) -> str:
    present_origins = {tool.origin for tool in tools}
    order = ("recorded", "stand_in", "inferred")
    return "+".join(origin for origin in order if origin in present_origins) or "none"


def _prompt_ids(
    messages: tuple[Message, ...], cuts: tuple[int, ...], tools: tuple[ToolSpec, ...]
) -> tuple[str, ...]:
    last = max(cuts, default=0)
    chain = [prompt_root(tools, _PROMPT_ID_VERSION)]
    for message in messages[:last]:
        chain.append(extend_prompt(chain[-1], message))
    return tuple(chain[cut] for cut in cuts)
