"""The account of losses: what each operator was given and dropped, with examples."""

from collections.abc import Iterable, Sequence

from tracemill.data_cards.model.release_spec import Loss, LossExample
from tracemill.normalize.normalizer import Normalized
from tracemill.records.pair import DroppedPair
from tracemill.records.placeholders import head_with_whole_placeholders

EXAMPLES = 3
EXCERPT_CHARS = 200


def build_drop_report(normalized: Normalized) -> tuple[Loss, ...]:
    """Every operator in its order, also those that dropped nothing."""
    counts = (
        Loss(operator=c.operator, rows_in=c.rows_in, dropped=c.dropped, errors=c.errors)
        for c in normalized.counts
    )
    return add_drop_examples(counts, normalized.dropped)


def add_drop_examples(losses: Iterable[Loss], dropped: Sequence[DroppedPair]) -> tuple[Loss, ...]:
    """The losses, each with its first rows, of different reasons where there are any."""
    by_operator: dict[str, list[DroppedPair]] = {}
    for gone in dropped:
        by_operator.setdefault(gone.operator, []).append(gone)
    return tuple(
        loss.model_copy(update={"examples": _examples(by_operator.get(loss.operator, ()))}) for loss in losses
    )


def _examples(dropped: Sequence[DroppedPair]) -> tuple[LossExample, ...]:
    first = {gone.reason: gone for gone in reversed(dropped)}
    some = [*reversed(first.values()), *(gone for gone in dropped if gone is not first[gone.reason])]
    return tuple(
        LossExample(
            pair_id=gone.pair.pair_id,
            reason=gone.reason,
            value=gone.value,
            chosen=_excerpt(gone.chosen_text),
            rejected=_excerpt(gone.rejected_text),
        )
        for gone in some[:EXAMPLES]
    )


def _excerpt(text: str) -> str:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text if len(text) <= EXCERPT_CHARS else f"{head_with_whole_placeholders(text, EXCERPT_CHARS)} ..."
