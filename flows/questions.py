"""What a replay of the workspace would ask, found without asking: for estimates and dry runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from flows.asking import Asking
from flows.gating import Gate
from flows.library_asking import build_ledger
from flows.progress import Meter
from flows.redacting import make_renewer, make_sieve
from flows.settings import RunSettings
from flows.shard_work import Shown, load_traces, stored_decisions
from flows.voting import referee_of
from records.errors import ConfigError, WorkspaceError
from records.reply import Decision
from records.workspace import Workspace
from teachers.hearing import Hearing
from teachers.ledger import Ledger
from teachers.price_book import PRICES, PriceBook
from teachers.question import Question
from teachers.replay_plan import Item, keys_of, plan_items
from teachers.reply_json import reply_for
from teachers.teacher import Teacher

_TRACES = 64


@dataclass(frozen=True, slots=True)
class Batch:
    """Some traces of a workspace as they are shown, the questions at their steps, and what was decided."""

    shown: tuple[Shown, ...]
    questions: tuple[Question, ...]
    decisions: tuple[Decision, ...]
    ledger: Ledger

    def wanted(self, teacher: Teacher, samples: int) -> list[Item]:
        """The answers of one teacher that are decided on and not bought yet, in the order of the steps."""
        items = plan_items(self.questions, self.decisions, [teacher], samples)
        bought = self.ledger.answers_to(keys_of(items))
        return [item for item in items if item.bought(bought) is None]

    def settled(self, teachers: Sequence[Teacher], settings: RunSettings) -> frozenset[str]:
        """The steps at which nobody else needs to be asked, by the answers that were bought."""
        items = plan_items(self.questions, self.decisions, teachers, settings.replay.samples)
        bought = self.ledger.answers_to(keys_of(items))
        clean = {item.trace.trace_id: item.reply for item in self.shown}
        families = {teacher.name: teacher.family for teacher in teachers}
        hearing = Hearing(referee_of(settings, self.shown), self.decisions, families)
        rest: list[Item] = []
        for item in items:
            if (stored := item.bought(bought)) is None:
                rest.append(item)
            else:
                reply = reply_for(stored, item.question.step_id, item.teacher.name)
                hearing.hear(clean[item.question.trace_id](reply))
        return frozenset(hearing.settled(rest))

    def asked(self, teacher: str) -> int:
        """At how many steps a teacher is to be asked, bought ones among them."""
        return sum(d.verdict == "ask" and d.teacher == teacher for d in self.decisions)


def batches_of(settings: RunSettings, work: Workspace) -> Iterator[Batch]:
    """The selected traces of a workspace. Raises WorkspaceError where it has none, ConfigError where
    nobody is to be asked."""
    if not settings.asked():
        raise ConfigError("no teachers are given", "a preset or [[teachers]]", "see docs/configuration.md")
    ids = sorted(trace_id for table in work.current("traces") for trace_id in table["trace_id"].to_pylist())
    if not ids:
        raise WorkspaceError(f"{work.root} holds no traces", "some", "run `tracemill ingest` first")
    renewer, sieve = make_renewer(work, settings), make_sieve(settings.select, work)
    with _ledger(settings, work) as ledger:
        book = PriceBook(work.root / PRICES)
        asking = Asking(settings, ledger, "", renewer.redactor, frozenset(), Meter(), book)
        if (gate := Gate.open(settings, work, book)) is not None:
            asking.gate, asking.states_left = gate, _states(work)
        for start in range(0, len(ids), _TRACES):
            traces = load_traces(work, ids[start : start + _TRACES])
            taken = [trace for trace in traces if sieve.reason(trace, Counter()) is None]
            shown = tuple(Shown.of(trace, renewer) for trace in taken)
            questions = tuple(question for item in shown for question in item.questions())
            before = stored_decisions(work, [trace.trace_id for trace in taken])
            yield Batch(shown, questions, tuple(asking.decide(questions, before, shown)), ledger)


def _states(work: Workspace) -> int:
    """The steps of all traces of a workspace."""
    contexts = (each for table in work.current("traces") for each in table["contexts"].to_pylist())
    return sum(len(context["steps"]) for each in contexts for context in each)


@contextmanager
def _ledger(settings: RunSettings, work: Workspace) -> Iterator[Ledger]:
    """The ledger of the workspace; an empty one where there is none yet, so that none is made."""
    if settings.ledger_url is None and not work.ledger_path.exists():
        with build_ledger(None) as ledger:
            yield ledger
        return
    with build_ledger(settings.ledger_url or work.ledger_path) as ledger:
        yield ledger
