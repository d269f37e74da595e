"""Ctrl-C: what is remembered, who is told, and what comes home."""

import signal
import sys
import time

import pytest

from tracemill.flows.runtime.interrupts import (
    EXIT_CODE,
    handle_termination,
    on_interrupt,
    raise_if_interrupted,
    remember_interrupts,
)
from tracemill.records.errors import ConfigError


def press() -> None:
    signal.raise_signal(signal.SIGINT)


class Swallows:
    def __del__(self) -> None:
        press()


def test_a_press_that_a_finalizer_swallows_ends_the_work_at_the_next_part() -> None:
    with remember_interrupts():
        raise_if_interrupted()
        item = Swallows()
        del item  # the KeyboardInterrupt rises in there, and is ignored
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
        time.sleep(0.2)  # taken: it is not raised a second time


def test_a_press_that_a_finalizer_swallows_ends_a_long_wait(capfd: pytest.CaptureFixture[str]) -> None:
    with remember_interrupts():
        item = Swallows()
        del item
        with pytest.raises(KeyboardInterrupt):
            time.sleep(60)
    assert capfd.readouterr().err == ""


def test_an_error_that_a_library_makes_of_a_press_ends_as_the_press_does() -> None:
    def fails(error: Exception, pressed: bool) -> None:
        with remember_interrupts():
            try:
                if pressed:
                    press()
            finally:
                raise error

    with pytest.raises(SystemExit) as ended:
        fails(RuntimeError("the context is not set"), pressed=True)
    assert ended.value.code == EXIT_CODE
    for error, pressed in ((RuntimeError("a fault"), False), (ConfigError("no such key", "one"), True)):
        with pytest.raises(type(error)):
            fails(error, pressed)


def test_what_else_cannot_be_raised_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaks:
        def __del__(self) -> None:
            raise ValueError("in a finalizer")

    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: told.append(str(lost.exc_value)))
    with remember_interrupts():
        item = Breaks()
        del item
    assert told == ["in a finalizer"]


def test_a_press_is_raised_where_nobody_is_told() -> None:
    with remember_interrupts(), pytest.raises(KeyboardInterrupt):
        press()
    with remember_interrupts():
        raise_if_interrupted()


def test_a_press_inside_the_import_system_is_raised_once_it_is_left() -> None:
    """Raised there, it would leave the lock of imports taken: other threads would wait for it for ever."""
    importing = compile("raise_signal(2)\nleft.append(1)", "<frozen importlib._bootstrap>", "exec")
    left: list[int] = []
    with remember_interrupts():
        exec(importing, {"raise_signal": signal.raise_signal, "left": left})
        assert left == [1]
        with pytest.raises(KeyboardInterrupt):
            time.sleep(60)


def test_who_waits_is_told_of_the_first_press_and_the_second_is_raised() -> None:
    told: list[str] = []
    with remember_interrupts():
        with on_interrupt(lambda: told.append("once")):
            press()
            with pytest.raises(KeyboardInterrupt):
                press()
        assert told == ["once"]
        with pytest.raises(KeyboardInterrupt), on_interrupt(lambda: told.append("again")):
            pass
    assert told == ["once"]


def test_the_handler_of_before_is_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with remember_interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_is_a_first_press_also_where_another_handler_was_set_meanwhile() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with handle_termination():  # nobody remembers presses
        assert signal.getsignal(signal.SIGTERM) == before
    with remember_interrupts(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
    with remember_interrupts():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with handle_termination():  # an ignored one stays so
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with handle_termination(), pytest.raises(KeyboardInterrupt):
            press()
        assert signal.getsignal(signal.SIGTERM) == signal.default_int_handler
        with handle_termination():
            signal.raise_signal(signal.SIGTERM)  # beside a Ctrl-C it is none
    raise_if_interrupted()  # behind the block nothing of it is left
