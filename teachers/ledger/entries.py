"""Define what goes into the ledger and what comes out; amounts are integers of nano-USD."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A planned call, and the most it can cost.

    `leave_nanousd` of the caps of run and day must remain free beside it. `account` names the charged
    account, "" if its charges cannot be read.
    """

    run_id: str
    trace_id: str
    step_id: str
    teacher: str
    request_key: str
    amount_nanousd: int
    leave_nanousd: int = 0
    account: str = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A granted intent."""

    call_id: int
    amount_nanousd: int


@dataclass(frozen=True, slots=True)
class DeniedReservation:
    """A refused intent: the cap of `scope` (`run`, `day` or `trace`) does not cover it now.

    `kept_nanousd` is the part of `wanted_nanousd` that must remain free.
    """

    scope: str
    cap_nanousd: int
    settled_nanousd: int
    reserved_nanousd: int
    wanted_nanousd: int
    kept_nanousd: int = 0


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A stored answer: its reply as JSON."""

    reply: str


@dataclass(frozen=True, slots=True)
class InFlightElsewhere:
    """A request that another live replay is asking now: waiting for its answer is cheaper than buying."""


Grant = Reservation | DeniedReservation | CachedAnswer
"""The final decision on an intent."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of a call.

    `cost_nanousd` None books the worst case. `reply` is stored as the answer to the request. `state` is
    `settled`, `released` (it cannot have been billed), `written_off` or `reconciled`. `stated_nanousd` is
    the charge that the provider stated, `bill_id` the id under which it can be looked up.
    """

    reservation: Reservation
    cost_nanousd: int | None
    reply: str | None = None
    outcome: str = "answer"
    state: str = "settled"
    stated_nanousd: int = 0
    bill_id: str = ""


@dataclass(frozen=True, slots=True)
class RunSpending:
    """The spending of a run; `open_calls` are not settled yet."""

    settled_nanousd: int
    reserved_nanousd: int
    cap_nanousd: int
    calls: int
    open_calls: int
    written_off: int
