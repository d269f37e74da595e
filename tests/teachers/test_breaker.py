"""Failures in a row: when attempts go out alone, when nothing goes out, and what an answer ends."""

from tracemill.records.message import Action
from tracemill.records.reply import TeacherReply
from tracemill.teachers.core.teacher_protocol import AttemptResult
from tracemill.teachers.replay.breaker import FAILURES, TRIALS, CircuitBreaker, FinishedAttempt, list_outages

SERVERS = {"a": "one", "b": "one", "c": "other"}


def asked(failure: str | None = None, why: str = "answers 500") -> AttemptResult:
    action = None if failure else Action("done")
    return AttemptResult(
        TeacherReply("t:0:0", "k", "a", "f", 0, 0, action=action, failure=failure), 0, why=why
    )


def hear(
    breaker: CircuitBreaker,
    teacher: str,
    failure: str | None,
    began: float,
    *,
    ended: float = 0,
    alone: bool = False,
) -> None:
    attempt = FinishedAttempt(began, ended or began, alone)
    breaker.record(teacher, asked(failure), attempt, lambda times: 2.0**times)


def fail(breaker: CircuitBreaker, teacher: str, times: int, since: float = 0) -> None:
    for number in range(times):
        hear(breaker, teacher, "provider_error", since + number)


def test_attempts_go_out_freely_until_five_failed_in_a_row() -> None:
    breaker = CircuitBreaker(SERVERS)
    fail(breaker, "a", FAILURES - 1)
    assert (breaker.wait_s("a", 10), breaker.begin_attempt("a")) == (0, False)
    fail(breaker, "a", 1, since=20)
    assert breaker.wait_s("a", 20) == 8  # 2 ** 3: the first wait has doubled three times
    assert breaker.wait_s("a", 30) == 0
    assert breaker.begin_attempt("a") is True
    assert breaker.wait_s("a", 30) is None  # one at a time
    breaker.end_trial("a")
    assert breaker.wait_s("a", 30) is not None


def test_teachers_of_one_server_fail_together_and_others_go_on() -> None:
    breaker = CircuitBreaker(SERVERS)
    fail(breaker, "a", 3)
    fail(breaker, "b", 2, since=10)
    for number in range(TRIALS):
        assert breaker.outages() == {}
        assert breaker.begin_attempt("b") is True
        hear(breaker, "b", "timeout", 100 + number, alone=True)
        breaker.end_trial("b")
    why = "its server failed 10 times in a row (the last answers 500)"
    assert breaker.outages() == {"a": why, "b": why}
    assert breaker.wait_s("c", 0) == 0
    assert list_outages(breaker.outages()) == f"a, b: {why}"


def test_an_answer_ends_the_row_and_one_to_what_was_sent_before_does_not() -> None:
    breaker = CircuitBreaker()
    fail(breaker, "a", FAILURES, since=100)
    hear(breaker, "a", None, began=50, ended=300)  # sent before the server died
    assert breaker.begin_attempt("a") is True
    breaker.end_trial("a")
    hear(breaker, "a", None, began=102.5, ended=301)  # the failures of 103 and 104 are left
    assert (breaker.wait_s("a", 0), breaker.begin_attempt("a")) == (0, False)
    fail(breaker, "a", FAILURES - 3, since=400)
    assert breaker.begin_attempt("a") is False
    fail(breaker, "a", 1, since=500)
    assert breaker.begin_attempt("a") is True


def test_what_is_in_flight_when_a_row_is_full_is_no_trial() -> None:
    breaker = CircuitBreaker()
    fail(breaker, "a", 40)
    assert breaker.outages() == {}
    for number in range(TRIALS):
        hear(breaker, "a", "network", 1_000 + number, alone=True)
    assert breaker.outages() == {"a": "it failed 45 times in a row (the last answers 500)"}


def test_failures_that_are_the_question_s_are_answers() -> None:
    breaker = CircuitBreaker()
    for number, kind in enumerate(("refused", "truncated", "context_too_long", "not_recorded") * 5):
        hear(breaker, "a", kind, number)
    assert breaker.begin_attempt("a") is False
    fail(breaker, "a", FAILURES - 1, since=100)
    hear(breaker, "a", "refused", 200)
    fail(breaker, "a", FAILURES - 1, since=300)
    assert breaker.begin_attempt("a") is False


def test_the_end_of_one_teacher_s_trial_lets_no_second_one_of_the_server_go() -> None:
    breaker = CircuitBreaker({"a": "one", "b": "one", "c": "one"})
    fail(breaker, "a", FAILURES - 1)
    hear(breaker, "b", None, 3.5)  # the server has a row of none: the failures of "a" alone count
    fail(breaker, "a", 1, since=20)
    assert breaker.begin_attempt("a") is True  # of the teacher: its server answers
    fail(breaker, "b", 2, since=30)
    fail(breaker, "c", 2, since=40)
    assert breaker.begin_attempt("b") is True  # the server's row is full: one at a time
    hear(breaker, "a", "network", 50, alone=True)
    breaker.end_trial("a")
    assert breaker.wait_s("c", 1_000) is None
    breaker.end_trial("b")
    assert breaker.wait_s("c", 1_000) == 0
