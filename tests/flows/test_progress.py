"""What the meter says: how far, for how much, and who is waited for."""

import time

import pytest

from tracemill.flows.runtime.progress import ProgressMeter, progress_meter


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_counts_questions_and_projects_what_the_rest_will_cost() -> None:
    meter = ProgressMeter(cap_usd=10.0)
    meter.begin("questions", 400, spent_usd=0.1)
    assert meter.line() == "questions 0/400 $0.1000 of $10.00"
    for _ in range(20):
        meter.replied("a/b", None, True)
    for _ in range(20):
        meter.replied("a/b", 0.001, True)
    meter.expect(fewer=100)
    assert meter.line() == "questions 40/300 $0.1200 of $10.00, about $0.3800 at this rate"
    for _ in range(260):
        meter.replied("a/b", 0.0, True)
    assert meter.line() == "questions 300/300 $0.1200 of $10.00"
    meter.begin("normalise and release", 0)
    assert meter.line() == "normalise and release $0.1200 of $10.00"


def test_a_line_is_written_again_only_where_it_has_changed() -> None:
    meter = ProgressMeter()
    meter.begin("ingest", 3)
    assert [meter.new_line(), meter.new_line()] == ["ingest 0/3", ""]
    meter.advance()
    assert [meter.new_line(), meter.new_line()] == ["ingest 1/3", ""]
    meter.name_step("normalise")
    assert meter.new_line() == "normalise 1/3"


def test_without_money_it_says_how_far_alone() -> None:
    meter = ProgressMeter()
    meter.begin("ingest", 1200)
    meter.advance(300)
    assert meter.line() == "ingest 300/1,200"


def test_while_a_provider_is_down_it_says_who_why_and_until_when() -> None:
    clock = Clock()
    meter = ProgressMeter(cap_usd=1.0, clock=clock)
    meter.begin("questions", 8)
    meter.waits("x/slow", "answers 503", 12.4)
    assert meter.line() == "questions 0/8 waiting: x/slow answers 503, next try in 12 s"
    meter.waits("y/held", "answers 402", 5)
    assert meter.status() == "waiting: y/held answers 402, next try in 5 s, and 1 more"
    clock.now += 7
    assert meter.status() == "waiting: y/held answers 402, trying again, and 1 more"
    meter.replied("y/held", 0.25, True)
    assert meter.line() == (
        "questions 1/8 $0.2500 of $1.00, about $2.0000 at this rate; "
        "waiting: x/slow answers 503, next try in 5 s"
    )
    meter.replied("x/slow", 0.0, True)
    assert "x/slow answers 503, next try in 5 s" in meter.status()
    clock.now += 6
    meter.replied("x/slow", 0.0, False)
    assert "x/slow answers 503, trying again" in meter.status()
    meter.replied("x/slow", 0.0, True)
    meter.note = "interrupted"
    assert meter.status() == "$0.2500 of $1.00, about $0.5000 at this rate; interrupted"
    meter.waits("x/slow", "answers 503", 12)
    meter.begin("release", 1)
    assert "x/slow" not in meter.status()


def test_off_a_terminal_there_is_a_line_now_and_then_also_while_nothing_moves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = ""
    with progress_meter(None, every_s=0.01) as meter:
        time.sleep(0.03)
        meter.begin("questions", 3)
        meter.waits("x/slow", "answers 503", 3000)
        while said.count("\n") < 2:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "questions 0/3 waiting: x/slow answers 503, next try in 3000 s\n" in said
    assert capsys.readouterr().err.strip().splitlines()[1:] == []


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_meter(1.0) as meter:
        meter.begin("questions", 3)
        meter.replied("a/b", 0.1, True)
    assert capsys.readouterr().err == ""
