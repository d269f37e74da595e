"""Sessions that replays ask about, and one such replay; as a program a process of its own that asks.

    python asked_sessions.py URL LEDGER_URL RUN CAP_NANOUSD TRACES STEPS

It says when it is ready, begins when it is told to, and says how many answers it has.
"""

import asyncio
import sys
from pathlib import Path

from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import MessageView
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.presets import SIMULATED
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import GateSettings, OpenRouterTeacherSettings, ReplaySettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import RunSpending
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

MODELS = tuple(teacher.model for teacher in SIMULATED.teachers)
KEY = {"OPENROUTER_API_KEY": "sk-or-simulated"}
TOOLS = (
    ToolSpec(
        "bash",
        "Runs a command.",
        {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    ),
    ToolSpec(
        "read_file",
        "Reads a file.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
)


def session(number: int, steps: int) -> tuple[Message, ...]:
    """A session of `steps` calls, every second of which fails."""
    messages = [Message("system", "You mend programs."), Message("user", f"Mend src/part{number}.py")]
    for step in range(steps):
        call = ToolCall(
            f"c{step}", "bash", f'{{"command": "python -m pytest tests/test_{number}_{step}.py"}}'
        )
        result = f"FAILED tests/test_{number}_{step}.py - AssertionError" if step % 2 else "1 passed"
        messages += [
            Message("assistant", "I run it.", (call,)),
            Message("tool", result, tool_call_id=call.id),
        ]
    return tuple(messages)


def questions_of(traces: int, steps: int) -> list[Question]:
    questions: list[Question] = []
    for number in range(traces):
        messages = session(number, steps)
        prompt_id, seen = prompt_root(TOOLS, "p1"), 0
        for step in range(steps):
            cut = 2 + 2 * step
            for message in messages[seen:cut]:
                prompt_id = extend_prompt(prompt_id, message)
            seen = cut
            view = MessageView(messages, cut)
            trace = f"t{number}"
            questions.append(Question(f"{trace}:0:{step}", trace, view, TOOLS, prompt_id, "p1", "r1"))
    return questions


async def run(
    url: str,
    place: Path | str,
    questions: list[Question],
    *,
    run_id: str = "run",
    cap_nanousd: int = 10**9,
    trace_cap_nanousd: int | None = None,
    settings: ReplaySettings | None = None,
    models: tuple[str, ...] = MODELS,
    environ: dict[str, str] | None = None,
) -> tuple[ReplayResult, RunSpending]:
    teachers = build_teachers(
        [OpenRouterTeacherSettings(model=model, base_url=url, max_tokens=200) for model in models],
        environ or KEY,
    )
    with Ledger(sqlite_url(place) if isinstance(place, Path) else place) as ledger:
        ledger.open_run(run_id, cap_nanousd, max_trace_nanousd=trace_cap_nanousd)
        decisions = make_gate_decisions(questions, teachers, 0, GateSettings())
        result = await replay(
            ReplayRequest(questions, decisions, teachers, ledger, run_id, settings or ReplaySettings())
        )
        return result, ledger.spent(run_id)


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    url, ledger_url, name, *numbers = sys.argv[1:]
    cap, traces, steps = map(int, numbers)
    asked = run(url, ledger_url, questions_of(traces, steps), cap_nanousd=cap, run_id=name)
    sys.stdout.write(f"{asyncio.run(asked)[0].counters['answered']}\n")
