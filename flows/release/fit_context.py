"""Cut rows of a release to the trainer's context, one at a time on their way to the writer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tracemill.data_cards.model.release_spec import OperatorDrops
from tracemill.data_cards.writing.tables import Shorten
from tracemill.flows.config.run_settings import RunSettings
from tracemill.normalize.context_length.cut_context import ContextCutter, FittedContext
from tracemill.normalize.context_length.short_rows import Shortener
from tracemill.normalize.context_length.token_counts import make_token_counter
from tracemill.records.message import Message
from tracemill.records.pair import DroppedPair, NormalizedDPOPair
from tracemill.records.views import ActionLabel, SoftStep, StepRun

OPERATOR = "max_tokens"


@dataclass(slots=True)
class ContextFitting:
    """A stage that cuts rows to the context length of a trainer.

    `too_long` are the pairs that do not fit even when cut, and `labels_too_long` counts such labels, by
    source and reason; both are complete after all rows were processed.
    """

    cutter: ContextCutter
    max_tokens: int
    rows_in: int = 0
    too_long: list[DroppedPair] = field(default_factory=list)
    labels_too_long: dict[str, Counter[str]] = field(default_factory=dict)

    def pairs(self, items: Iterable[NormalizedDPOPair]) -> Iterator[NormalizedDPOPair]:
        """Yield the pairs that fit, with their contexts cut and their lengths."""
        for item in items:
            self.rows_in += 1
            pair = item.pair
            fitted = self.cutter.fit(pair.state_messages, pair.tools, (pair.chosen, pair.rejected))
            if isinstance(fitted, FittedContext):
                yield replace(item, pair=replace(pair, state_messages=fitted.messages), length=fitted.length)
            else:
                self.too_long.append(self._dropped(item, fitted))

    def steps(
        self, steps: Iterable[StepRun | SoftStep | ActionLabel]
    ) -> Iterator[StepRun | SoftStep | ActionLabel]:
        """Yield the steps that fit, with their contexts cut."""
        for step in steps:
            tools = () if isinstance(step, StepRun) else step.tools
            fitted = self.cutter.fit(step.state_messages, tools, _sides(step))
            if isinstance(fitted, FittedContext):
                yield replace(step, state_messages=fitted.messages)
            elif isinstance(step, ActionLabel):
                self.labels_too_long.setdefault(step.label_source, Counter())[self._reason] += 1

    def losses(self) -> tuple[OperatorDrops, ...]:
        """Count the rows that did not fit, for the report."""
        return (OperatorDrops(operator=OPERATOR, rows_in=self.rows_in, dropped=len(self.too_long)),)

    @property
    def _reason(self) -> str:
        return f"more than {self.max_tokens} tokens, however cut"

    def _dropped(self, item: NormalizedDPOPair, tokens: int) -> DroppedPair:
        pair = replace(item.pair, state_messages=())
        return DroppedPair(pair, item.chosen_text, item.rejected_text, OPERATOR, self._reason, str(tokens))


def make_shorteners(settings: RunSettings) -> dict[int, Shorten]:
    """Return the functions that cut rows to short contexts, by token limit.

    For the shortest limit only the tools called in the row are kept.
    """
    release = settings.release
    lengths = [most for most in release.short if not release.max_tokens or most < release.max_tokens]
    count = make_token_counter(release.tokenizer) if lengths else None
    return {most: Shortener(count, most, most == lengths[0]).fit for most in lengths if count is not None}


def _sides(step: StepRun | SoftStep | ActionLabel) -> Sequence[Sequence[Message]]:
    """Return the texts that must fit after the context of a step, each one separately."""
    if isinstance(step, SoftStep):
        return [(candidate.message,) for candidate in step.candidates]
    if isinstance(step, ActionLabel):
        return [(step.message,)]
    return [[message for turn in step.turns for message in turn]]


def make_fitting(settings: RunSettings) -> ContextFitting:
    """Build the cutting stage of a configuration.

    Raises NormalizeError if its tokenizer cannot be used.
    """
    release = settings.release
    return ContextFitting(
        ContextCutter(make_token_counter(release.tokenizer), release.max_tokens), release.max_tokens
    )
