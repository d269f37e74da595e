"""Simulate a teacher's answer: a function of seed, model, sample and the request alone.

Candidates come from the state and use offered tools. The state decides how much teachers agree (after a fault
nearly all pick the fix, at an open moment they scatter); state and model decide which candidate each picks.
Some answers are invalid, as real ones are.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracemill.teachers.offline.sim_text import PLAIN, sim_text_style, sim_text_toolbox, write_sim_text_call
from tracemill.teachers.offline.sim_tools import Toolbox
from tracemill.teachers.offline.sim_view import RequestView, hash_sim_text, sim_view_text, summarise_request

_INVALID_SHARE = 0.02
_SETTLED_SHARE = 0.2  # open states at which most teachers see the same next step
_OWN_SHARE = 0.8
_ODD_SHARE = 0.3
_NO_HINT_SHARE = 0.1
_HINT = re.compile(r"\n\nThe error:\n(.*?)\n\n.*Answer with the hint alone, or with NONE", re.DOTALL)
_TWO_ACTIONS = re.compile(r"\n\nA:\n(.*)\n\nB:\n(.*)\n\n.*one letter: A, B, or N", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """A simulated answer with its token counts; `prompt_tokens` never exceeds the bytes of the text."""

    text: str
    calls: tuple[tuple[str, str], ...]
    call_id: str
    prompt_tokens: int
    completion_tokens: int

    def wire_message(self) -> dict[str, Any]:
        """Return the assistant message in the OpenAI shape."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text, "refusal": None}
        if self.calls:
            message["tool_calls"] = [
                {
                    "index": index,
                    "id": f"call_{self.call_id}{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for index, (name, arguments) in enumerate(self.calls)
            ]
        return message


@dataclass(frozen=True, slots=True)
class _SimulatedAction:
    """A text and the call to make; `ends` is True if the text alone finishes the task."""

    text: str
    call: tuple[str, str] | None = None
    ends: bool = False


def sim_policy_share(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts alone."""
    joined = "\x1f".join(str(part) for part in parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=7).digest(), "big") / 2**56


def _shell_or(box: Toolbox, role: str, command: str, **hints: str) -> tuple[str, str] | None:
    return box.call(role, **hints) or box.call("shell", command=command)


def _read(box: Toolbox, path: str) -> _SimulatedAction:
    return _SimulatedAction(f"I read {path} first.", _shell_or(box, "read", f"cat {path}", path=path))


def _search(box: Toolbox, pattern: str) -> _SimulatedAction:
    call = _shell_or(box, "search", f"grep -rn {json.dumps(pattern)} .", pattern=pattern)
    return _SimulatedAction(f"I search for {pattern}.", call)


def _run(box: Toolbox, command: str) -> _SimulatedAction:
    return _SimulatedAction(f"I run `{command.splitlines()[0][:60]}`.", box.call("shell", command=command))


def _fixes(view: RequestView, box: Toolbox) -> list[_SimulatedAction]:
    """Return the actions against the fault at the end of the conversation, the best first."""
    target = (view.files or view.tests or ("README.md",))[0]
    name = target.rsplit("/", 1)[-1]
    if view.fault == "missing":
        return [
            _SimulatedAction(
                f"The path is wrong, I look for {name}.", box.call("shell", command=f"find . -name {name}")
            )
        ]
    if view.fault == "edit":
        return [_read(box, target)]
    if view.fault == "test":
        return [_read(box, target), _search(box, view.symbol or name)]
    return [_read(box, target), _run(box, "git status --short")]


def _open_moves(view: RequestView, box: Toolbox) -> list[_SimulatedAction]:
    """Return the possible next actions if nothing went wrong."""
    moves = [_read(box, path) for path in view.files[:3]]
    tests = view.tests[0] if view.tests else ""
    moves.append(_run(box, f"python -m pytest {tests} -q".replace("  ", " ")))
    if view.symbol:
        moves.append(_search(box, view.symbol))
    moves.append(_run(box, "git diff"))
    moves.append(_run(box, "ls -la"))
    if view.turns > 6:
        moves.append(
            _SimulatedAction("The change is in place and the tests pass.", box.call("finish"), ends=True)
        )
    return moves


def _candidates(view: RequestView, box: Toolbox) -> list[_SimulatedAction]:
    moves = (_fixes(view, box) if view.fault else []) + _open_moves(view, box)
    usable = [move for move in moves if move.call is not None or move.ends or not box.roles]
    return usable or [_SimulatedAction("I would look at the project before changing anything.")]


def _pick(
    view: RequestView, box: Toolbox, agreement: float, settled: bool, draw: Callable[[str], float]
) -> _SimulatedAction:
    """Return the first candidate with probability `agreement`, else another one or a unique action."""
    moves = _candidates(view, box)
    if draw("agree") < agreement:
        return moves[0]
    if not settled and draw("own") < _OWN_SHARE:
        return _unique_read(view, box, draw) or moves[0]
    return moves[int(draw("which") * len(moves))]


def _unique_read(view: RequestView, box: Toolbox, draw: Callable[[str], float]) -> _SimulatedAction | None:
    """Return a read of a place that no other teacher reads; None without a shell."""
    line = 1 + int(draw("line") * 400)
    target = view.files[int(draw("file") * len(view.files))] if view.files else ""
    move = _run(box, f"sed -n '{line},{line + 40}p' {target}" if target else f"git log --oneline -n {line}")
    return move if move.call is not None else None


def _judge(messages: Sequence[Mapping[str, Any]], seed: int, model: str) -> _SimulatedAction | None:
    """Return the simulated judge's letter if the last message compares two actions, else None.

    Most answers are the same in both orders; a few are always `A` or always `N` (neither).
    """
    found = _TWO_ACTIONS.search(sim_view_text(messages[-1])) if messages else None
    if found is None:
        return None
    first, second = found.groups()
    drawn = sim_policy_share(seed, model, *sorted((first, second)))
    if drawn < _ODD_SHARE:
        return _SimulatedAction("N" if drawn < _ODD_SHARE / 2 else "A")
    liked = max(first, second, key=lambda text: sim_policy_share(seed, text))
    return _SimulatedAction("A" if liked == first else "B")


def _hint(messages: Sequence[Mapping[str, Any]], draw: Callable[[str], float]) -> _SimulatedAction | None:
    """Return a hint if the last message asks for one on an error, sometimes without text; else None."""
    found = _HINT.search(sim_view_text(messages[-1])) if messages else None
    if found is None:
        return None
    if draw("hint") < _NO_HINT_SHARE:
        return _SimulatedAction("NONE")
    lines = found[1].strip().splitlines() or ["nothing"]
    return _SimulatedAction(
        f"Look at what is there first. The last words of the error are: {lines[-1][:200]}"
    )


def _invalid_answer(move: _SimulatedAction, draw: Callable[[str], float]) -> _SimulatedAction:
    """Return an answer that cannot be carried out: an unknown tool or invalid arguments."""
    if draw("spoil") < 0.5 or move.call is None:
        return _SimulatedAction(move.text, ("open_editor_window", json.dumps({"where": "here"})))
    return _SimulatedAction(move.text, (move.call[0], move.call[1][:-1]))


def estimate_tokens(text: str) -> int:
    """Return a quarter of the bytes, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def sim_tools_tokens(tools: Sequence[Mapping[str, Any]]) -> int:
    """Return the tokens of the tools offered."""
    return sum(estimate_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools)


def sim_message_tokens(message: Mapping[str, Any]) -> int:
    """Return the tokens of one message in the OpenAI shape."""
    total = 4 + estimate_tokens(sim_view_text(message))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        total += estimate_tokens(f"{function.get('name')}{function.get('arguments')}")
    return total


def simulate_answer(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    sample: int = 0,
) -> SimulatedAnswer:
    """Return the answer of one simulated model to one request in the OpenAI shape."""
    state = hash_sim_text(messages).hex()

    def draw(what: str) -> float:
        return sim_policy_share(seed, state, model, sample, what)

    view = summarise_request(messages)
    settled = bool(view.fault) or sim_policy_share(seed, state, "settled") < _SETTLED_SHARE
    agreement = 0.95 if view.fault else 0.75 if settled else 0.1
    style = PLAIN if tools else sim_text_style(messages)
    box = Toolbox.of(tools) if tools else sim_text_toolbox(style)
    told = _judge(messages, seed, model) or _hint(messages, draw)
    move = told or _pick(view, box, agreement, settled, draw)
    if style != PLAIN and told is None:
        move = _SimulatedAction(write_sim_text_call(style, move.text, move.call))
    if tools and told is None and draw("invalid") < _INVALID_SHARE:
        move = _invalid_answer(move, draw)
    calls = (move.call,) if move.call else ()
    answer = move.text + "".join(name + arguments for name, arguments in calls)
    return SimulatedAnswer(
        text=move.text,
        calls=calls,
        call_id=hashlib.blake2b(f"{seed}{state}{model}{sample}".encode(), digest_size=6).hexdigest(),
        prompt_tokens=sim_tools_tokens(tools) + sum(map(sim_message_tokens, messages)),
        completion_tokens=estimate_tokens(answer) + 8,
    )
