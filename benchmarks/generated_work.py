"""The work that generated sessions hold, and how it is written to files."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANSWERS = 60
START = 1_772_359_200_000
_WORDS_TEXT = """bed tree gate row water path count seed list file test value index error return import class
    string number garden"""
_WORDS = _WORDS_TEXT.split()


@dataclass(frozen=True)
class Turn:
    """An answer of the model with its call and the result."""

    thought: str
    text: str
    tool: str
    arguments: dict[str, Any]
    result: str
    number: int

    @property
    def call_id(self) -> str:
        """Return the id of the call."""
        return f"toolu_{self.number:06d}"

    @property
    def time(self) -> str:
        """Return when the answer was made."""
        return f"2026-03-01T10:{self.number // 60:02d}:{self.number % 60:02d}.000Z"


@dataclass(frozen=True)
class Work:
    """One session: its id, the request and the answers."""

    name: str
    request: str
    turns: tuple[Turn, ...]


def make_work(number: int) -> Work:
    """Return a session; the same number gives the same one."""
    draw = random.Random(number)

    def prose(size: int) -> str:
        words = draw.choices(_WORDS, k=size // 6)
        return " ".join(word if place % 12 else f'"{word}"\n' for place, word in enumerate(words))

    turns = []
    for place in range(1, ANSWERS + 1):
        path = f"/home/dev/garden/src/{draw.choice(_WORDS)}_{place}.py"
        call: tuple[str, dict[str, Any]] = ("read", {"file_path": path, "offset": place, "limit": 200})
        if place % 6 == 0:
            call = ("edit", {"file_path": path, "old_string": prose(500), "new_string": prose(700)})
        elif place % 2:
            call = ("bash", {"command": f"cd /home/dev/garden && pytest -q {path} -k {draw.choice(_WORDS)}"})
        size = min(30_000, int(200 + draw.expovariate(1 / 4300)))
        turns.append(Turn(prose(600), prose(300), *call, prose(size), place))
    return Work(f"{number:08x}-0000-4000-8000-000000000000", prose(800), tuple(turns))


def write_lines(path: Path, records: Iterator[Any]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def write_json(path: Path, value: Any) -> None:
    """Write one JSON value."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2))
