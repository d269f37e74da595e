"""What goes into the ledger and what comes out; amounts are integers of nano-USD."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intent:
    """A call about to go out, and the most it can cost. `leave_nusd` of the caps of run and day must be
    left free beside it. `account` names whose money it is, "" where nobody can say what was charged."""

    run_id: str
    trace_id: str
    step_id: str
    teacher: str
    request_key: str
    amount_nusd: int
    leave_nusd: int = 0
    account: str = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A granted intent."""

    call_id: int
    amount_nusd: int


@dataclass(frozen=True, slots=True)
class Denied:
    """A refused intent: the cap of `scope` (`run`, `day` or `trace`) does not cover it now. Of what it
    wants, `kept_nusd` is what it would have to leave."""

    scope: str
    cap_nusd: int
    settled_nusd: int
    reserved_nusd: int
    wanted_nusd: int
    kept_nusd: int = 0


@dataclass(frozen=True, slots=True)
class Bought:
    """The answer is in the ledger already: its reply as JSON."""

    reply: str


@dataclass(frozen=True, slots=True)
class BeingBought:
    """Somebody else who lives is asking it at the moment: its answer is worth waiting for."""


Grant = Reservation | Denied | Bought
"""What becomes of an intent in the end."""


@dataclass(frozen=True, slots=True)
class Close:
    """A call come home: `cost_nusd` None books the worst case; `reply` is kept as the answer to the
    request; `state` is `settled`, `released` (it cannot have been billed), `written_off` or `reconciled`.
    `stated_nusd` is what the provider said it charged, and `bill_id` what its page on the answer is found
    by."""

    reservation: Reservation
    cost_nusd: int | None
    reply: str | None = None
    outcome: str = "answer"
    state: str = "settled"
    stated_nusd: int = 0
    bill_id: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """Where a run stands; `open_calls` are intents nobody has settled."""

    settled_nusd: int
    reserved_nusd: int
    cap_nusd: int
    calls: int
    open_calls: int
    written_off: int
