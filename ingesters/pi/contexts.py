"""Build the contexts of a Pi session: what the model was sent at each of its answers.

The prompt of an answer is the path from the root of the tree to it. Behind a compaction it is the summary,
the entries that the compaction kept or the messages that it holds itself, and what follows it. So an entry
whose parent is not the one before it begins a context (`rewind`), unless no prompt shows what lies between,
and so does a compaction. Thinking of one model is shown to another as text: an answer of another model begins
a context where that changes earlier messages (`rewritten`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemill.ingesters.common.flags import BROKEN_OFF, NO_ACTION, OVER_LIMIT
from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.common.openai_messages import first_text
from tracemill.ingesters.pi.entries import SHOWN, UNSHOWN, PiEntry, PiSession, retained_entries
from tracemill.ingesters.pi.messages import (
    CUT_OFF,
    ROLES,
    answer_message,
    block_text,
    has_open_thinking,
    parse_usage,
    result_message,
    shell_text,
    summary_text,
    unread_blocks,
)
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart, Fidelity

MISSING_PARENT = "entry whose parent is not in the file"
LEFT_OUT_SINCE = "2026-01-19"
"""Day of Pi 0.49.2, from which on prompts leave out answers that broke off; the file names no version."""
ModelKey = tuple[Any, ...]


def model_key(message: Mapping[str, Any]) -> ModelKey:
    """Return the key that answers of one model share: provider, API, model."""
    return tuple(message.get(key) for key in ("provider", "api", "model"))


@dataclass(slots=True)
class PiContext:
    """One context under construction. `lost` and `stand_in` hold for the next step and later ones."""

    start: ContextStart
    growing: GrowingContext
    lost: bool = False
    stand_in: bool = False
    lost_from: int | None = None
    approximate_from: int | None = None

    def note_step(self) -> None:
        """Note the fidelity of the step that is added next."""
        index = len(self.growing.steps)
        unasked = index == 0 and all(message.role != "user" for message in self.growing.messages)
        if self.lost_from is None and (self.lost or unasked):
            self.lost_from = index
        if self.approximate_from is None and (
            self.stand_in or self.growing.unanswered or self.growing.displaced
        ):
            self.approximate_from = index

    def finish(self, index: int) -> Context:
        """Return the context as it is now."""
        self.growing.close_calls()
        lost, approximate = self.lost_from is not None, self.approximate_from is not None
        fidelity = Fidelity(context="lost" if lost else "approximate" if approximate else "complete")
        return Context(
            index,
            tuple(self.growing.messages),
            tuple(self.growing.steps),
            self.start,
            (),
            fidelity,
            self.lost_from or 0,
            self.approximate_from,
        )


@dataclass(slots=True)
class PiContextBuilder:
    """Builder of all contexts of one session, entry by entry in the order they were written.

    `shown` are the entries of the current prompt, the summary of a compaction first. `as_text` are the ids of
    the answers whose thinking the current model is shown as text.
    """

    session: PiSession
    report: IngestReport
    contexts: list[Context] = field(default_factory=list)
    shown: list[PiEntry] = field(default_factory=list)
    as_text: frozenset[str] = frozenset()
    model: ModelKey | None = None
    last: str | None = None
    context: PiContext = field(default_factory=lambda: PiContext("start", GrowingContext()))

    def run(self) -> list[Context]:
        """Return the contexts of the session that hold a step."""
        for entry in self.session.entries.values():
            if not self._goes_on(entry):
                self._go_to(entry)
            elif entry.torn:
                self.context.lost = True
            self._add(entry)
            self.last = entry.id
        self._close()
        return self.contexts

    def _goes_on(self, entry: PiEntry) -> bool:
        """Return whether an entry follows the current prompt: behind its parent stands nothing shown."""
        place, met = self.last, set[str]()
        while place is not None and place != entry.parent and place not in met:
            between = self.session.entries.get(place)
            if between is None or between.torn or between.kind not in UNSHOWN:
                return False
            met.add(place)
            place = between.parent
        return place == entry.parent

    def _go_to(self, entry: PiEntry) -> None:
        """Begin a context with the path to the parent of an entry."""
        self.report.branches_real += self.last is not None and entry.parent in (None, *self.session.entries)
        path, whole = self.session.path_to(entry.parent)
        compacted = [place for place, each in enumerate(path) if each.kind == "compaction"]
        if compacted:
            shown, whole = self._compacted(path, compacted[-1], whole)
            self.shown = shown + path[compacted[-1] + 1 :]
        else:
            self.shown = path
        if not whole:
            self.report.flags[MISSING_PARENT] += 1
        self._begin("start" if self.last is None else "rewind", lost=not whole)

    def _compacted(self, path: list[PiEntry], place: int, rooted: bool) -> tuple[list[PiEntry], bool]:
        """Return a compaction of a path with the entries it kept, and whether the file holds all of them.

        `rooted` is True if the path begins at the root: entries kept from another path are not shown then.
        """
        compaction = path[place]
        retained = retained_entries(compaction)
        if retained is not None:
            return [compaction, *retained], True
        kept_from = first_text(compaction.record.get("firstKeptEntryId"))
        index = compaction.record.get("firstKeptEntryIndex")
        if isinstance(index, int):
            kept_from = str(index)
        first = next((at for at, each in enumerate(path[:place]) if each.id == kept_from), None)
        kept = [each for each in path[first:place] if each.kind != "compaction"] if first is not None else []
        elsewhere = rooted and kept_from in self.session.entries
        whole = first is not None or elsewhere or kept_from in (None, compaction.id)
        return [compaction, *kept], whole

    def _add(self, entry: PiEntry) -> None:
        """Add an entry after the current prompt; it is a step if it is an action."""
        if entry.kind == "compaction":
            self.report.compactions += 1
            path, rooted = self.session.path_to(entry.id)
            self.shown, whole = self._compacted(path, len(path) - 1, rooted)
            self._begin("compaction", lost=not whole)
            for each in retained_entries(entry) or ():
                self.report.unknown.update(self._unread(each, each.message.get("role")))
            return
        message = entry.message
        if message.get("role") == "assistant" and message.get("stopReason") not in CUT_OFF:
            self._fit_model(model_key(message))
        self.shown.append(entry)
        self._show(entry, own=True)

    def _fit_model(self, model: ModelKey) -> None:
        """Begin a context if the new model is shown earlier thinking in another form than the last model."""
        if model == self.model:
            return
        self.model = model
        others = frozenset(
            entry.id
            for entry in self.shown
            if entry.message.get("role") == "assistant"
            and model_key(entry.message) != model
            and has_open_thinking(entry.message)
        )
        if others != self.as_text:
            self.as_text = others
            start = "rewritten" if self.context.growing.steps else self.context.start
            self._begin(start, lost=self.context.lost, keep_model=True)

    def _begin(self, start: ContextStart, lost: bool, keep_model: bool = False) -> None:
        """Begin a context with the current prompt."""
        self._close()
        if not keep_model:
            self.as_text, self.model = frozenset(), None
        self.context = PiContext(start, GrowingContext(start), lost=lost)
        for entry in self.shown:
            self._show(entry, own=False)

    def _close(self) -> None:
        if self.context.growing.steps:
            self.contexts.append(self.context.finish(len(self.contexts)))

    def _show(self, entry: PiEntry, own: bool) -> None:
        """Add the part of an entry that a prompt shows."""
        message, growing = entry.message, self.context.growing
        role = message.get("role") if entry.kind == "message" else entry.kind
        if entry.kind in UNSHOWN:
            return
        if unread := self._unread(entry, role):
            self.context.lost = True
            if own:
                self.report.unknown.update(Counter(unread))
        if role == "assistant":
            self._show_answer(entry, own and not unread)
        elif role == "toolResult":
            result = result_message(message)
            self.report.tool_errors += own and result.is_error is True
            if (reason := growing.add_result(result)) and own:
                self.report.skipped[reason] += 1
        else:
            for text in self._user_texts(entry, role):
                growing.add_message(Message("user", text))

    def _unread(self, entry: PiEntry, role: Any) -> list[str]:
        """Return the names of the parts of an entry that are not read."""
        if entry.kind not in SHOWN:
            return [f"record {record_type(entry.kind)}"]
        if entry.kind == "message" and role not in ROLES:
            return [f"message {record_type(role)}"]
        content = entry.record.get("content") if role == "custom_message" else entry.message.get("content")
        return [f"block {record_type(name)}" for name in unread_blocks(content)]

    def _user_texts(self, entry: PiEntry, role: Any) -> Iterator[str]:
        """Yield the text of an entry that a prompt shows as the user's, none if it shows nothing of it."""
        message = entry.message
        if role in ("user", "custom", "hookMessage"):
            yield block_text(message.get("content"))
        elif role == "custom_message":
            yield block_text(entry.record.get("content"))
        elif role == "bashExecution" and (text := shell_text(message)) is not None:
            yield text
        elif role in ("compaction", "branch_summary", "branchSummary", "compactionSummary"):
            self.context.stand_in = True
            yield summary_text((entry.record if role == entry.kind else message).get("summary"))

    def _show_answer(self, entry: PiEntry, own: bool) -> None:
        """Add an answer; it is a step if it is a whole action of this context."""
        message, context = entry.message, self.context
        answer = answer_message(message, entry.id, entry.id in self.as_text)
        acts = bool(answer.content.strip() or answer.tool_calls)
        reason = message.get("stopReason")
        if reason in CUT_OFF:
            if own:
                self.report.steps_synthetic += 1
                self.report.flags[BROKEN_OFF] += 1
            if acts and entry.time < LEFT_OUT_SINCE:
                context.growing.add_action(answer, None)
                context.stand_in = True
            return
        if not acts:
            self.report.flags[NO_ACTION] += own
            return
        metadata = None
        if own and reason == "length":
            self.report.flags[OVER_LIMIT] += 1
        elif own:
            context.growing.close_calls()
            context.note_step()
            metadata = StepMetadata(
                model=first_text(message.get("model")),
                native_id=first_text(message.get("responseId")),
                usage=parse_usage(message.get("usage")),
                cwd=first_text(self.session.header.get("cwd")),
                timestamp=entry.time or None,
            )
        context.growing.add_action(answer, metadata)
