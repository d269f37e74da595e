"""What tests of teachers share: the questions of one context, and a teacher at a server."""

import socket

from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import MessageView
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.chat_teacher import ChatTeacher
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import OpenRouterTeacherSettings
from tracemill.teachers.pricing.price_book import PriceBook

KEY = {"OPENROUTER_API_KEY": "sk-or-simulated"}
MODEL = "simulated/deepseek-a"
TOOLS = (ToolSpec("bash", "Runs a command.", {"type": "object"}),)


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def chain(steps: int, trace: str = "t1", result: str = "x = 1\n" * 200) -> list[Question]:
    """The questions of one context: every step calls once and reads `result`."""
    messages = [Message("system", "You mend programs."), Message("user", "Mend src/app.py.")]
    for step in range(steps):
        call = ToolCall(f"c{step}", "bash", '{"command": "cat src/app.py"}')
        messages += [
            Message("assistant", "", (call,)),
            Message("tool", f"{step} {result}", tool_call_id=call.id),
        ]
    found, prompt_id = list[Question](), prompt_root(TOOLS, "p1")
    for at, message in enumerate(messages):
        prompt_id = extend_prompt(prompt_id, message)
        if at % 2:
            view = MessageView(tuple(messages), at + 1)
            found.append(Question(f"{trace}:0:{at // 2}", trace, view, TOOLS, prompt_id, "p1", "r1"))
    return found


def teacher_at(url: str, book: PriceBook | None = None, **more: object) -> ChatTeacher:
    given = {"model": MODEL, "base_url": url, "max_tokens": 100, **more}
    (teacher,) = build_teachers([OpenRouterTeacherSettings.model_validate(given)], KEY, book=book)
    assert isinstance(teacher, ChatTeacher)
    return teacher
