"""Encode pairs and votes as rows of the views for other trainers."""

from collections.abc import Iterator, Sequence

from tracemill.data_cards.model.columns import ORIGIN_COLUMNS
from tracemill.data_cards.writing.encode_rows import (
    Row,
    RowEncoder,
    agreeing_teachers,
    clean_texts,
    encode_clean_text,
    encode_message_row,
    pair_columns,
)
from tracemill.records.label_source import source_in_words
from tracemill.records.message import Message, render_turn
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.records.placeholders import head_with_whole_placeholders, tail_with_whole_placeholders
from tracemill.records.views import ActionLabel, SoftStep, StepOrigin, StepRun

ERROR_CHARS = 2000
_AGENT = "[assistant]\n"
_QUESTION = "What do you do next?"
_ALIKE = "{n} models would do this here, or something of the same intent:"
_ALONE = "A model would do this here:"
_DONE, _FAILED = "What was done here:", "It failed:"
WRITTEN = (_QUESTION, _ALIKE, _ALONE, _DONE, _FAILED, "characters")
"""Texts in these rows that come from no session, besides those of each label source."""


def pair_view_rows(encoder: RowEncoder, kept: NormalizedDPOPair, view: str) -> Iterator[Row]:
    """Yield the rows of a pair in the view `dpo_json`, `sft`, `kto`, `prm` or `hints`, else none."""
    pair = kept.pair
    if view == "prm":
        yield _better_row(encoder, kept)
    elif view == "dpo_json":
        yield _plain_row(encoder, kept)
    elif view == "sft":
        yield _chosen_row(encoder, kept)
    elif view in ("kto", "hints"):
        base = {"tools": encoder.tools(pair.tools), **pair_columns(pair), "simulated": pair.simulated}
        if view == "hints":
            yield {
                **base,
                "prompt": _one_turn(encoder, pair),
                "privileged_context": encode_clean_text(encode_hint_text(kept)),
            }
            return
        base["prompt"] = encoder.messages(pair.state_messages)
        yield {**base, "completion": encoder.messages(pair.chosen), "label": True}
        yield {**base, "completion": encoder.messages(pair.rejected), "label": False}


def _chosen_row(encoder: RowEncoder, kept: NormalizedDPOPair) -> Row:
    """Return the chosen side of a pair as a single action.

    A teachers' pair is weighted by the share of votes for it.
    """
    pair = kept.pair
    columns = pair_columns(pair)
    counted = sum(vote.counted for vote in pair.votes)
    return {
        "prompt": encoder.messages(pair.state_messages),
        "completion": encoder.messages(pair.chosen),
        "tools": encoder.tools(pair.tools),
        **{name: columns[name] for name in ("step_id", "pair_id", "label_source", "verified", "evidence")},
        **{name: columns[name] for name in ORIGIN_COLUMNS},
        "operation": columns["chosen_operation"],
        "verdict": "pair" if pair.votes else "",
        "same_as_student": False,
        "n_teachers_agreeing": pair.n_teachers_agreeing,
        "n_votes": counted,
        "simulated": pair.simulated,
        "cost_usd": pair.cost_usd,
        "weight": pair.n_teachers_agreeing / counted if counted else pair.weight,
        "outcome_weight": None,
        "outcome_support": 0,
        "families": list(pair.families),
        "teachers": agreeing_teachers(pair),
    }


def action_row(encoder: RowEncoder, label: ActionLabel) -> Row:
    """Return the row of a labelled action, for the view of its source and for `sft`."""
    return {
        "prompt": encoder.messages(label.state_messages),
        "completion": encoder.messages((label.message,)),
        "tools": encoder.tools(label.tools),
        "step_id": label.step_id,
        "pair_id": label.pair_id,
        "label_source": label.label_source,
        "verified": "none",
        "operation": label.operation,
        "verdict": label.verdict,
        "evidence": encode_clean_text(label.evidence),
        **_origin(label.origin),
        "same_as_student": label.same_as_student,
        "n_teachers_agreeing": len(label.teachers),
        "n_votes": label.n_votes,
        "cost_usd": label.cost_usd,
        "weight": label.weight,
        "outcome_weight": label.outcome_weight,
        "outcome_support": label.outcome_support,
        "families": list(map(encode_clean_text, label.families)),
        "teachers": list(map(encode_clean_text, label.teachers)),
    }


def _plain_row(encoder: RowEncoder, kept: NormalizedDPOPair) -> Row:
    """Return the row of a pair with calls and schemas as JSON texts, for readers without JSON columns."""
    row = encoder.dpo_row(kept)
    for side in ("prompt", "chosen", "rejected"):
        row[side] = [encoder.cached(message, _plain_message) for message in row[side]]
    row["tools"] = encoder.cached(row["tools"], _json_list)
    return row


def _plain_message(message: Row) -> Row:
    calls = message["tool_calls"]
    return {**message, "tool_calls": _json_list(calls) if calls else None}


def _json_list(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"


def _one_turn(encoder: RowEncoder, pair: DPOPair) -> list[Row]:
    """Return the state as one user turn after the system prompt.

    Trainers of self-distillation take no prompt that ends with a tool result.
    """
    system = [message for message in pair.state_messages if message.role == "system"]
    rest = [message for message in pair.state_messages if message.role != "system"]
    text = "".join(encoder.cached(message, _as_text) for message in rest)
    return [*encoder.messages(system), encode_message_row(Message("user", f"{text}\n{_QUESTION}"))]


def encode_hint_text(kept: NormalizedDPOPair) -> str:
    """Return the hint at a step: the agent's action, its error if it failed, and the better action."""
    failure = f"{_FAILED}\n{shorten_view_text(kept.error)}\n\n" if kept.error else ""
    return f"{_DONE}\n{kept.rejected_text}\n\n{failure}{_better(kept.pair)}\n{kept.chosen_text}"


def _better(pair: DPOPair) -> str:
    """Return the sentence that introduces the chosen action.

    Votes for actions that count as more than one agree by their intent alone.
    """
    sentence = source_in_words(pair.label_source).better
    if pair.label_source == "teachers" and pair.n_teachers_agreeing == 1:
        sentence = _ALONE
    elif pair.label_source == "teachers" and len({vote.key for vote in pair.votes if vote.agrees}) > 1:
        sentence = _ALIKE
    return sentence.replace("{n}", str(pair.n_teachers_agreeing))


def shorten_view_text(text: str) -> str:
    """Shorten a text to its beginning and end, about `ERROR_CHARS` characters together."""
    if len(text) <= ERROR_CHARS:
        return text
    first = head_with_whole_placeholders(text, ERROR_CHARS // 2)
    last = tail_with_whole_placeholders(text, ERROR_CHARS // 2)
    return f"{first}\n[... {len(text) - len(first) - len(last):,} characters ...]\n{last}"


def run_row(encoder: RowEncoder, run: StepRun) -> Row:
    """Return the row of a run of judged steps in the view `prm`."""
    return {
        "prompt": _prompt(encoder, run.state_messages),
        "completions": [_turn(encoder, turn) for turn in run.turns],
        "labels": list(run.labels),
        "kind": "agent",
        "step_ids": list(run.step_ids),
        "label_sources": list(run.label_sources),
        **_origin(run.origin),
    }


def _better_row(encoder: RowEncoder, kept: NormalizedDPOPair) -> Row:
    """Return the chosen action of a pair as one good step in the view `prm`."""
    pair = kept.pair
    columns = pair_columns(pair)
    return {
        "prompt": _prompt(encoder, pair.state_messages),
        "completions": [_turn(encoder, pair.chosen)],
        "labels": [True],
        "kind": "preferred",
        "step_ids": [pair.step_id],
        "label_sources": [pair.label_source],
        **{name: columns[name] for name in ORIGIN_COLUMNS},
        "simulated": pair.simulated,
    }


def encode_soft_view(encoder: RowEncoder, step: SoftStep) -> Row:
    """Return the row of a step in the view `soft`."""
    votes = sum(len(candidate.teachers) for candidate in step.candidates)
    return {
        "prompt": encoder.messages(step.state_messages),
        "candidates": [
            {
                "completion": encoder.messages((candidate.message,)),
                "weight": len(candidate.teachers) / votes,
                "count": len(candidate.teachers),
                "operation": candidate.operation,
                "teachers": list(map(encode_clean_text, candidate.teachers)),
                "agreed": candidate.agreed,
            }
            for candidate in step.candidates
        ],
        "tools": encoder.tools(step.tools),
        "step_id": step.step_id,
        **_origin(step.origin),
        "verdict": step.verdict,
        "evidence": encode_clean_text(step.evidence),
        "student": step.student,
        "cost_usd": step.cost_usd,
    }


def _origin(origin: StepOrigin) -> Row:
    row = clean_texts({name: getattr(origin, name) for name in ORIGIN_COLUMNS})
    return {**row, "simulated": origin.simulated}


def _prompt(encoder: RowEncoder, messages: Sequence[Message]) -> str:
    """Render a conversation as a text that ends before the agent's answer."""
    return "".join(encoder.cached(message, _as_text) for message in messages) + _AGENT


def _turn(encoder: RowEncoder, messages: Sequence[Message]) -> str:
    """Render an action, after the messages since the previous one."""
    *before, action = messages
    text = "".join(encoder.cached(message, _as_text) for message in before)
    return f"{text}{_AGENT if before else ''}{encode_clean_text(render_turn((action,)))}"


def _as_text(message: Message) -> str:
    return f"[{message.role}]\n{encode_clean_text(render_turn((message,)))}\n"
