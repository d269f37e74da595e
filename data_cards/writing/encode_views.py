"""Rows of the views: what pairs and votes say, in the form of other trainers."""

from collections.abc import Iterator, Sequence

from tracemill.data_cards.model.columns import ORIGIN_COLUMNS
from tracemill.data_cards.writing.encode_rows import (
    Row,
    RowEncoder,
    agreeing_teachers,
    encode_clean_text,
    encode_message_row,
    pair_columns,
)
from tracemill.records.label_source import source_in_words
from tracemill.records.message import Message, render_turn
from tracemill.records.pair import DPOPair, NormalizedDPOPair
from tracemill.records.placeholders import head_with_whole_placeholders, tail_with_whole_placeholders
from tracemill.records.views import ActionLabel, Origin, SoftStep, StepRun

ERROR_CHARS = 2000
_AGENT = "[assistant]\n"
_QUESTION = "What do you do next?"
_ALIKE = "{n} models would do this here, or something of the same intent:"
_ALONE = "A model would do this here:"
_DONE, _FAILED = "What was done here:", "It failed:"
WRITTEN = (_QUESTION, _ALIKE, _ALONE, _DONE, _FAILED, "characters")
"""What is said in these rows that no session says, beside the words of each label source."""


def pair_view_rows(encoder: RowEncoder, kept: NormalizedDPOPair, view: str) -> Iterator[Row]:
    """The rows of a pair in the view `dpo_json`, `sft`, `kto`, `prm` or `hints`; other views have none."""
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
    """The chosen side of a pair as one action. Its weight is the share of the votes for it, 1 where none was
    cast."""
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
        "weight": pair.n_teachers_agreeing / counted if counted else 1.0,
        "outcome_weight": None,
        "outcome_support": 0,
        "families": list(pair.families),
        "teachers": agreeing_teachers(pair),
    }


def action_row(encoder: RowEncoder, label: ActionLabel) -> Row:
    """The row of a labelled action, in the view of its source and in `sft`."""
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
    """The row of a pair with calls and schemas as JSON texts, for readers without JSON columns."""
    row = encoder.dpo_row(kept)
    for side in ("prompt", "chosen", "rejected"):
        row[side] = [encoder.remembered(message, _plain_message) for message in row[side]]
    row["tools"] = encoder.remembered(row["tools"], _json_list)
    return row


def _plain_message(message: Row) -> Row:
    calls = message["tool_calls"]
    return {**message, "tool_calls": _json_list(calls) if calls else None}


def _json_list(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"


def _one_turn(encoder: RowEncoder, pair: DPOPair) -> list[Row]:
    """The state as one turn of the user behind the system prompt: trainers of self-distillation take no
    prompt that ends with the result of a tool."""
    system = [message for message in pair.state_messages if message.role == "system"]
    rest = [message for message in pair.state_messages if message.role != "system"]
    told = "".join(encoder.remembered(message, _as_text) for message in rest)
    return [*encoder.messages(system), encode_message_row(Message("user", f"{told}\n{_QUESTION}"))]


def encode_hint_text(kept: NormalizedDPOPair) -> str:
    """What a model that knows better is told at a step: what was done, what came back where that failed, and
    what was agreed on."""
    parts = [f"{_DONE}\n{kept.rejected_text}"]
    if kept.error:
        parts.append(f"{_FAILED}\n{shorten_view_text(kept.error)}")
    return "\n\n".join([*parts, f"{_better(kept.pair)}\n{kept.chosen_text}"])


def _better(pair: DPOPair) -> str:
    """What says why the chosen action is the better one. Votes for actions that count as more than one
    agree by their intent alone."""
    said = source_in_words(pair.label_source).better
    if pair.label_source == "teachers":
        counted_as = {vote.key for vote in pair.votes if vote.agrees}
        said = _ALONE if pair.n_teachers_agreeing == 1 else _ALIKE if len(counted_as) > 1 else said
    return said.replace("{n}", str(pair.n_teachers_agreeing))


def shorten_view_text(text: str) -> str:
    """A text of at most about `ERROR_CHARS` characters: its beginning and its end."""
    if len(text) <= ERROR_CHARS:
        return text
    first, last = (
        head_with_whole_placeholders(text, ERROR_CHARS // 2),
        tail_with_whole_placeholders(text, ERROR_CHARS // 2),
    )
    return f"{first}\n[... {len(text) - len(first) - len(last):,} characters ...]\n{last}"


def run_row(encoder: RowEncoder, run: StepRun) -> Row:
    """The row of a run of judged steps in the view `prm`."""
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
    """The chosen action of a pair as one step that is right."""
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


def _origin(origin: Origin) -> Row:
    row: Row = {name: getattr(origin, name) for name in ORIGIN_COLUMNS}
    row = {name: encode_clean_text(value) if isinstance(value, str) else value for name, value in row.items()}
    return {**row, "simulated": origin.simulated}


def _prompt(encoder: RowEncoder, messages: Sequence[Message]) -> str:
    """A conversation as text, up to where the agent speaks."""
    return "".join(encoder.remembered(message, _as_text) for message in messages) + _AGENT


def _turn(encoder: RowEncoder, messages: Sequence[Message]) -> str:
    """What an agent did, behind what was said before it since its last turn."""
    *before, did = messages
    said = "".join(encoder.remembered(message, _as_text) for message in before)
    return f"{said}{_AGENT if before else ''}{encode_clean_text(render_turn((did,)))}"


def _as_text(message: Message) -> str:
    return f"[{message.role}]\n{encode_clean_text(render_turn((message,)))}\n"
