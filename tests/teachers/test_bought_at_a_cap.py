"""At one cap the same is bought, however many calls are in flight."""

from collections import Counter
from pathlib import Path

import pytest
from asked_sessions import questions_of, run

from tracemill.teachers.core.teacher_settings import ReplaySettings
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

pytestmark = pytest.mark.anyio
TRACES, STEPS = 60, 10
WIDTHS = (8, 64, 256)
EXPLORED = 3
"""Steps of a trace that are explored, at most: they go first, of all traces."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("share", [0.3, pytest.param(0.6, marks=[pytest.mark.slow, pytest.mark.long])])
async def test_what_is_bought_overlaps_at_8_64_and_256_in_flight(tmp_path: Path, share: float) -> None:
    questions = questions_of(TRACES, STEPS)
    with running() as server:
        _, spent = await run(server.url, tmp_path / "all.db", questions)
        cap = int(spent.settled_nanousd * share)
    bought: dict[int, set[tuple[str, str]]] = {}
    finished: dict[int, float] = {}
    for width in WIDTHS:
        settings = ReplaySettings(concurrency=width)
        # Another seed answers in another order.
        with running(StubSettings(latency_s=0.02, latency_spread=1.0, seed=width)) as server:
            place = tmp_path / f"{width}.db"
            result, spent = await run(server.url, place, questions, cap_nanousd=cap, settings=settings)
            assert server.stats()["charged_nanousd"] == spent.settled_nanousd <= cap
        assert spent.settled_nanousd > 0.9 * cap
        bought[width] = {(reply.step_id, reply.teacher) for reply in result.replies}
        steps = Counter(step_id.rsplit(":", 2)[0] for step_id in {step_id for step_id, _ in bought[width]})
        begun = [asked for asked in steps.values() if asked > EXPLORED]
        finished[width] = begun.count(STEPS) / len(begun)
    overlaps = {
        (a, b): len(bought[a] & bought[b]) / len(bought[a] | bought[b])
        for a in WIDTHS
        for b in WIDTHS
        if a < b
    }
    assert min(overlaps.values()) >= 0.9, (overlaps, finished)
    assert min(finished.values()) >= 0.75, finished
