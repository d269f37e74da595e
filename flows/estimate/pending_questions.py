"""Find what a replay would ask, without asking: for estimates and dry runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracemill.flows.admission.redaction_setup import make_trace_filter
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.ask_batches import group_batches
from tracemill.flows.labeling.ask_session import AskSession, refill_session_rows
from tracemill.flows.labeling.cap_room import RemainingPairs
from tracemill.flows.labeling.gate_run import Gate, gate_version
from tracemill.flows.labeling.label_shard import ShownTrace, load_decisions, load_replies, load_traces
from tracemill.flows.labeling.run_ledger import build_ledger, open_stored_ledger
from tracemill.flows.labeling.trace_batches import select_traces
from tracemill.flows.labeling.vote_policy import build_stopper
from tracemill.flows.run_state.run_records import unfinished_run
from tracemill.flows.runtime.progress import ProgressMeter
from tracemill.records.errors import ConfigError
from tracemill.records.reply import AskDecision
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reply_json import answer_from_reply_json
from tracemill.teachers.planning.replay_plan import WantedAnswer, plan_items, replay_plan_keys
from tracemill.teachers.pricing.price_book import PRICES, PriceBook
from tracemill.teachers.replay.observed_replies import ReplyCollector


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """The stored answers of a workspace: those in the ledger, and those that would be restored to it."""

    ledger: Ledger
    refilled: Ledger

    def answers_to(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored replies to those of the requests that have one, by key."""
        return self.refilled.answers_to(keys) | self.ledger.answers_to(keys)


@dataclass(frozen=True, slots=True)
class QuestionBatch:
    """Traces of a workspace as teachers see them, the questions at their steps, and the decisions.

    A gate decides on `open_steps` only after answers to earlier batches have arrived, so they are not known
    yet.
    """

    shown: tuple[ShownTrace, ...]
    questions: tuple[Question, ...]
    decisions: tuple[AskDecision, ...]
    bought: StoredAnswers
    open_steps: int = 0
    no_room: frozenset[str] = frozenset()
    """Steps that are expected to be left out, since the release has no room for their pairs."""

    def wanted(self, teacher: Teacher, samples: int) -> list[WantedAnswer]:
        """Return the answers of one teacher that are decided on and not stored yet, in the order of steps."""
        items = plan_items(self.questions, self.decisions, [teacher], samples)
        bought = self.bought.answers_to(replay_plan_keys(items))
        return [item for item in items if item.bought(bought) is None]

    def settled(self, teachers: Sequence[Teacher], settings: RunSettings) -> frozenset[str]:
        """Return the steps at which the stored answers make the label certain."""
        items = plan_items(self.questions, self.decisions, teachers, settings.replay.samples)
        bought = self.bought.answers_to(replay_plan_keys(items))
        clean = {item.trace.trace_id: item.reply for item in self.shown}
        families = {teacher.name: teacher.family for teacher in teachers}
        stopper = build_stopper(settings, self.shown)
        observed = ReplyCollector(stopper, self.decisions, families)
        rest: list[WantedAnswer] = []
        for item in items:
            if (stored := item.bought(bought)) is None:
                rest.append(item)
            else:
                reply = answer_from_reply_json(stored, item.question.step_id, item.teacher.name)
                observed.add(clean[item.question.trace_id](reply))
        return frozenset(observed.decided_steps(rest))

    def asked(self, teacher: str) -> int:
        """Count the steps at which a teacher is to be asked, answered ones included."""
        return sum(d.verdict == "ask" and d.teacher == teacher for d in self.decisions)


def batch_pending_questions(settings: RunSettings, work: Workspace) -> Iterator[QuestionBatch]:
    """Yield the selected traces of a workspace in the batches, and with the decisions, of a replay.

    Raises WorkspaceError if there are no traces, ConfigError if there are no teachers.
    """
    if not settings.asked_teachers():
        raise ConfigError("no teachers are given", "a preset or [[teachers]]", "see docs/configuration.md")
    reredactor = make_reredactor(work, settings)
    chosen = select_traces(work, make_trace_filter(settings.select, work))
    with open_stored_ledger(settings, work) as ledger, build_ledger(None) as refilled:
        book = PriceBook(work.root / PRICES)
        unfinished = unfinished_run(work, settings.fingerprint(), "replay")
        run_id = unfinished.run_id if unfinished and ledger.has_run(unfinished.run_id) else ""
        asking = AskSession(
            settings,
            ledger,
            run_id,
            reredactor.redactor,
            frozenset(),
            ProgressMeter(),
            book,
            gate=Gate.open(settings, work, book),
            room=RemainingPairs.open(settings, work),
            states_left=chosen.summary.states,
        )
        bought = StoredAnswers(ledger, refilled)
        for place, plan in enumerate(group_batches(chosen.batches, settings.replay.concurrency)):
            later = place > 0 and asking.gate is not None
            yield from [_decided(work, asking, reredactor, ids, bought, later) for ids in plan]


def _decided(
    work: Workspace,
    asking: AskSession,
    reredactor: Reredactor,
    ids: Sequence[str],
    bought: StoredAnswers,
    later: bool,
) -> QuestionBatch:
    """Decide on a batch; `later` says that a replay will have more answers when it decides."""
    shown = tuple(ShownTrace.of(trace, reredactor) for trace in load_traces(work, ids))
    questions = tuple(question for item in shown for question in item.questions())
    before = load_decisions(work, ids)
    decisions = tuple(asking.decide(questions, before, shown))
    refill_session_rows(bought.ledger, load_replies(work, ids), bought.refilled)
    version = gate_version(asking.settings)
    fixed = {d.step_id for d in before if d.gate.partition("+")[0] == version}
    open_steps = sum(question.step_id not in fixed for question in questions) if later else 0
    no_room = frozenset[str]()
    if asking.room is not None:
        paid = {reply.step_id for reply in load_replies(work, ids)}
        asking.room.show(shown, [d for d in decisions if d.step_id not in paid])
        no_room = asking.room.expected_full(decisions, paid)
    return QuestionBatch(shown, questions, decisions, bought, open_steps, no_room)
