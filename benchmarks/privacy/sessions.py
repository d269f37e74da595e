"""Redaction of whole sessions measured: outputs of commands, values said again, prefixed lines, classes.

    python benchmarks/privacy/sessions.py [--list first|second|third|fourth|fifth|sixth] [--seed N] [--missed]

Prints a table in Markdown: how many values were planted, how many of them no piece survives, and the 95 %
interval of that share. With `--missed`, up to 40 that survived are shown as redaction left them.
"""

import argparse
import base64
import json
import random
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import NamedTuple
from urllib.parse import quote

import corpus
import session_kinds
import session_kinds_fifth
import session_kinds_fourth
import session_kinds_second
import session_kinds_sixth
import session_kinds_third
from judging import changes, found
from scores import PERSONAL_TYPES
from shapes import Made, Maker, expand, template

from tracemill.privacy.redaction.redactor import RULES_VERSION, Redactor
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Context, Step, Trace
from tracemill.records.wilson_interval import wilson_interval

LISTS = {
    "first": session_kinds,
    "second": session_kinds_second,
    "third": session_kinds_third,
    "fourth": session_kinds_fourth,
    "fifth": session_kinds_fifth,
    "sixth": session_kinds_sixth,
}
"""The lists of commands and values."""
EXAMPLES = 40
"""Missed values that are shown."""
_ROUNDS = 2
"""Values of each kind in each form of a repetition."""
_PER_KIND = 3
"""Plants of each kind that are put behind prefixes."""
_SIGNS = str.maketrans("¦⟦⟧", "|[]")
_CONTROL_WRAPPERS = 3


class Outcome(NamedTuple):
    """One planted value: the line of the table and the group it counts in, and what is left of it."""

    line: str
    label: str
    found: bool
    redacted: str


class Value(NamedTuple):
    """A value to say again: what of it is public (`head`), private, and public once more (`tail`)."""

    kind: str
    name: str
    head: str
    private: str
    tail: str

    @property
    def text(self) -> str:
        """The value as a program takes it."""
        return self.head + self.private + self.tail


class Said(NamedTuple):
    """A value said again: the message that holds it, and the private part as it is spelled there."""

    message: Message
    parts: tuple[str, ...]


class Wrapped(NamedTuple):
    """A command line and what it prints."""

    command: str
    output: str


def fill(text: str, rng: random.Random, kinds: ModuleType) -> Made:
    """Fill the template of an output, with a drawn value where it says so."""
    made = expand(text.replace("{v}", rng.choice(kinds.PLAIN_VALUES)), rng)
    return Made(made.text.translate(_SIGNS), made.parts)


def wrapped(command: str, output: str, rng: random.Random) -> dict[str, Wrapped]:
    """Return a command in every wrapper that leaves its output readable, by the wrapper's name."""
    quoted, name = shlex.quote(command), rng.choice(("TOKEN", "PW", "value", "OUT"))
    lines = {
        "plain": command,
        "cd": f"cd /srv/app && {command}",
        "sudo": f"sudo {command}",
        "bash -lc": f"bash -lc {quoted}",
        "variable before": f"{rng.choice(('AWS_PROFILE=prod', 'NO_COLOR=1', 'LC_ALL=C'))} {command}",
        "ssh": f"ssh web-1 {quoted}",
        "assigned, echoed": f'{name}=$({command}) && echo "${name}"',
        "after other commands": f"set -e; git pull -q; {command} 2>/dev/null",
    }
    results = {wrapper: Wrapped(line, output) for wrapper, line in lines.items()}
    if "\n" not in output:
        results["tr"] = Wrapped(f"{command} | tr -d '\\n'", output)
        results["head"] = Wrapped(f"{command} | head -1", output)
    return results


def session(*messages: Message) -> Trace:
    """Return a session of these messages, after a request."""
    told = (Message("user", "The deployment fails since this morning, find out why."), *messages)
    steps = tuple(
        Step(step, cut) for step, cut in enumerate(n for n, m in enumerate(told) if m.role == "assistant")
    )
    return Trace("claude_code-1", "claude_code", "claude_code", "claude_code", (Context(0, told, steps),))


def ran(tool: str, command: str, output: str) -> tuple[Message, Message, Message]:
    """Return a command that an agent runs, its result, and what the agent says then."""
    arguments: dict[str, object] = {"command": command}
    if tool == "Bash":
        arguments["description"] = "Check the setting"
    else:
        output += "\n[The command completed with exit code 0.]\n[Current working directory: /workspace]"
    return (
        Message("assistant", "", (ToolCall("c1", tool, json.dumps(arguments)),)),
        Message("tool", output, tool_call_id="c1"),
        Message("assistant", "That is set. I look at the logs next."),
    )


def after(redactor: Redactor, trace: Trace) -> list[str]:
    """Return the texts of the messages of a session once it is redacted, one for each message."""
    redacted = redactor.redact_trace(trace)[0]
    return ["\n".join(message.texts()) for message in redacted.contexts[0].messages]


def commands(redactor: Redactor, seed: int, kinds: ModuleType) -> Iterator[Outcome]:
    """Yield the outputs of commands that print a secret, and of commands that print none."""
    rows = [(c, o, False) for c, o in kinds.COMMANDS] + [(c, o, True) for c, o in kinds.ENCODED_COMMANDS]
    for command, text, encoded in rows:
        rng = random.Random(f"{seed} {command}")
        made = fill(text, rng, kinds)
        if encoded:
            plain = base64.b64encode(made.text.encode()).decode()
            lines = wrapped(command, plain, rng)
            lines["base64 -d"] = Wrapped(f"{command} | base64 -d", made.text)
            parts: tuple[str, ...] = (plain, made.text)
        else:
            lines, parts = wrapped(command, made.text, rng), made.parts
        for wrapper, each in lines.items():
            tool = rng.choice(("Bash", "execute_bash"))
            messages = ran(tool, each.command, each.output)
            texts = after(redactor, session(*messages))
            ok = found(parts, "\n".join(texts))
            left = f"{each.command}\n{texts[2]}"
            yield Outcome("command outputs", command, ok, left)
            yield Outcome(f"by wrapper: {wrapper}", command, ok, left)
            yield Outcome(f"by tool: {tool}", command, ok, left)
            intact = not _secret_changes(messages[0].tool_calls[0].arguments, texts[1].lstrip("\n"))
            yield Outcome("control: commands of these changed", command, not intact, texts[1])
    for command, text in kinds.CONTROLS:
        rng = random.Random(f"{seed} {command}")
        output = expand(f"{text}[]", rng).text.translate(_SIGNS)
        lines = wrapped(command, output, rng)
        for wrapper in ("plain", *rng.sample(sorted(lines.keys() - {"plain"}), _CONTROL_WRAPPERS - 1)):
            messages = ran(rng.choice(("Bash", "execute_bash")), *lines[wrapper])
            texts = after(redactor, session(*messages))
            changed = texts[2] != messages[1].content
            yield Outcome("control: harmless outputs changed", command, changed, texts[2])


def _secret_changes(before: str, text: str) -> bool:
    return any(change.type not in PERSONAL_TYPES for change in changes(before, text))


def values(seed: int, kinds: ModuleType) -> list[Value]:
    """Return values to say again: half have a shape of their own, half first stand under a telling name."""
    rng = random.Random(f"{seed} values")
    results: list[Value] = []
    for name, make in _shaped(rng, kinds):
        made = make(rng)
        if len(made.parts) == 1 and len(made.text) <= 120 and len(results) < len(kinds.TELLING_VALUES):
            head, _, tail = made.text.partition(made.parts[0])
            results.append(Value(name, "", head, made.parts[0], tail))
    for name, text in kinds.TELLING_VALUES:
        value = template(text)(rng).text
        results.append(Value(f"{name} {text}", name, "", value, ""))
    return results


def _shaped(rng: random.Random, kinds: ModuleType) -> list[tuple[str, Maker]]:
    """Return makers of values with a shape of their own: those of the list, or of the corpus."""
    if kinds is not session_kinds:
        return [(name, template(text)) for name, text in kinds.VENDOR_VALUES]
    known = [k for k in corpus.kinds() if k.category == "secret" and k.shape == "value" and k.by_sight]
    return [(kind.name, kind.make) for kind in rng.sample(known, len(known))]


def in_yaml(value: str) -> str:
    """Return a scalar of YAML, quoted where it has a sign or a blank."""
    return value if re.fullmatch(r"[\w.+/=-]+", value) else f'"{value}"'


def in_dotenv(name: str, value: str) -> str:
    """Return an assignment of a `.env` file, quoted as the value needs."""
    if re.fullmatch(r"[\w@%+=:,./-]+", value):
        return f"{name}={value}"
    return f"{name}='{value}'" if "'" not in value else f'{name}="{in_double_quotes(value)}"'


def in_double_quotes(text: str) -> str:
    """Escape what a shell reads in double quotes."""
    return re.sub(r'([\\"$`])', r"\\\1", text)


def with_backslashes(text: str) -> str:
    """Escape what a shell reads outside quotes."""
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", text)


def in_json(text: str) -> str:
    """Escape a text for a JSON string."""
    return json.dumps(text)[1:-1]


def first_shown(value: Value, rng: random.Random) -> tuple[Message, ...]:
    """Return the messages that first show a value: a file of settings, or a user who gives it."""
    if not value.name:
        return (
            Message("user", f"Use this one for staging: {value.text}"),
            Message("assistant", "I do that."),
        )
    path, lines = ".env", ["NODE_ENV=production", in_dotenv(value.name, value.text), "PORT=8080"]
    if not value.name.isupper():
        path = "config/production.yml"
        lines = ["app:", "  host: app.corp", f"  {value.name}: {in_yaml(value.text)}", "  port: 8080"]
    if rng.random() < 0.5:
        call = ToolCall("c0", "Bash", json.dumps({"command": f"cat {path}"}))
    else:
        call = ToolCall("c0", "Read", json.dumps({"file_path": f"/srv/app/{path}"}))
        lines = [f"{number:6d}→{line}" for number, line in enumerate(lines, 1)]
    return (
        Message("assistant", "", (call,)),
        Message("tool", "\n".join(lines), tool_call_id="c0"),
        Message("assistant", "The settings are there."),
    )


def _as_user(spell: Callable[[str], str], text: str) -> Callable[[Value], Said]:
    return lambda v: Said(Message("user", text.format(spell(v.text))), (spell(v.private),))


def _as_result(spell: Callable[[str], str], text: str) -> Callable[[Value], Said]:
    return lambda v: Said(Message("tool", text.format(spell(v.text)), tool_call_id="c9"), (spell(v.private),))


def _as_command(spell: Callable[[str], str], text: str) -> Callable[[Value], Said]:
    def say(value: Value) -> Said:
        command = json.dumps({"command": text.format(spell(value.text)), "timeout": 60})
        return Said(
            Message("assistant", "", (ToolCall("c9", "Bash", command),)), (in_json(spell(value.private)),)
        )

    return say


def _single_quoted(text: str) -> str:
    return text.replace("'", "'\"'\"'")


def _url(text: str) -> str:
    return quote(text, safe="")


def _basic(value: Value) -> Said:
    """Spell `app:value` in base64; the characters that hold `app:` and the public head are not private."""
    pair = f"app:{value.text}"
    coded = base64.b64encode(pair.encode()).decode()
    start = -(-len(f"app:{value.head}".encode()) * 8 // 6)
    stop = len(f"app:{value.head}{value.private}".encode()) * 8 // 6
    return Said(
        Message("tool", f"> GET /v1/items\n> x-info: {coded}\n< 401", tool_call_id="c9"), (coded[start:stop],)
    )


def _nested(value: Value) -> Said:
    inner = json.dumps({"first": value.text, "retries": 3})
    arguments = json.dumps({"file_path": "/srv/app/conf.json", "content": inner})
    part = in_json(in_json(value.private))
    return Said(Message("assistant", "", (ToolCall("c9", "Write", arguments),)), (part,))


def _split(value: Value) -> Said:
    middle = len(value.head) + len(value.private) // 2
    first, second = value.text[:middle], value.text[middle:]
    view = f"     1→[app]\n     2→first = {first}\n     3→{second}\n     4→port = 8080"
    halves = (first.removeprefix(value.head), second.removesuffix(value.tail))
    return Said(Message("tool", view, tool_call_id="c9"), halves)


def _hex(value: Value) -> Said:
    text = f"sent 0x{value.text.encode().hex().upper()} to the socket"
    return Said(Message("tool", text, tool_call_id="c9"), (value.private.encode().hex().upper(),))


FORMS: dict[str, Callable[[Value], Said]] = {
    "prose": _as_user(str, "It still says 401 with {} here, can you look again?"),
    "command, single quotes": _as_command(_single_quoted, "./check.sh --once '{}'"),
    "command, double quotes": _as_command(in_double_quotes, './check.sh --once "{}"'),
    "command, backslashes": _as_command(with_backslashes, "./check.sh --once {}"),
    "URL-encoded": _as_result(_url, "GET http://localhost:8080/check?q={}&page=2 401"),
    "userinfo of a URL": _as_result(_url, "connecting to postgresql://app:{}@db:5432/orders failed"),
    "base64 of user:value": _basic,
    "JSON in JSON arguments": _nested,
    "two numbered lines": _split,
    "Python repr": _as_result(
        lambda text: repr(text)[1:-1],
        "  File \"app.py\", line 4, in run\nrow = {{'first': '{}', 'ok': False}}",
    ),
    "log line": _as_result(str, "2026-11-28T10:01:02Z DEBUG worker 3 got {} from upstream"),
    "diff": _as_result(in_json, '@@ -1,2 +1,3 @@\n import app\n+app.run("{}")\n app.stop()'),
    "backticks": lambda v: Said(Message("assistant", f"The job ran with `{v.text}`, as set."), (v.private,)),
    "upper-case hex": _hex,
}
"""Ways in which a later message says a value again."""


def repeated(redactor: Redactor, seed: int, kinds: ModuleType) -> Iterator[Outcome]:
    """Yield values that a session shows once, and says again in another form."""
    for round_ in range(_ROUNDS):
        for value in values(seed + round_, kinds):
            shown = first_shown(value, random.Random(f"{seed} {round_} {value.kind}"))
            origin = "\n".join(after(redactor, session(*shown)))
            spelled = in_dotenv(value.name, value.private)[len(value.name) + 1 :].strip("'\"")
            part = spelled if value.name else value.private
            yield Outcome("values when first shown", value.kind, found((part,), origin), origin)
            group = "of a known shape" if not value.name else "under a telling name"
            for form, say in FORMS.items():
                said = say(value)
                text = "\n".join(after(redactor, session(*shown, said.message))[len(shown) + 1 :])
                ok = found(said.parts, text)
                for line in ("values said again", f"by value: {group}", f"by form: {form}"):
                    yield Outcome(line, f"{form}, {value.kind}", ok, text)


PREFIXES: dict[str, tuple[str, str]] = {
    "Read, arrow": ("{n:6d}→", ""),
    "Read, tab": ("{n:6d}\t", ""),
    "grep -n, path": ("src/app/main.py:{n}:", ""),
    "grep -n": ("{n}:", ""),
    "diff +": ("+", ""),
    "diff -": ("-", ""),
    "quote": ("> ", ""),
    "colour": ("\x1b[32m", "\x1b[0m"),
    "timestamp": ("2026-11-28T10:01:{s:02d}.123Z ", ""),
    "container": ("api-1  | ", ""),
}
"""What stands before and after every line."""


def behind(prefix: str, text: str) -> str:
    """Put every line of a text behind a prefix."""
    before, end = PREFIXES[prefix]
    return "\n".join(
        f"{before.format(n=number, s=number % 60)}{line}{end}"
        for number, line in enumerate(text.split("\n"), 1)
    )


def prefixed(redactor: Redactor, seed: int) -> Iterator[Outcome]:
    """Yield plants that have lines, plain and behind each prefix."""
    for kind in corpus.kinds():
        own = [
            plant
            for plant in corpus.plants(seed, only=[kind])
            if "\n" in plant.text.strip() and plant.setting != "tool output: numbered"
        ]
        rng = random.Random(f"{seed} {kind.name} prefixed")
        for plant in rng.sample(own, min(_PER_KIND, len(own))):
            label = f"{kind.name}, {plant.setting}"
            for line, text in {
                "lines, plain": plant.text,
                **{f"lines behind: {prefix}": behind(prefix, plant.text) for prefix in PREFIXES},
            }.items():
                redacted = redactor.redact_text(text)[0]
                yield Outcome(line, label, found(plant.parts, redacted), redacted)


def classes(redactor: Redactor, seed: int) -> Iterator[Outcome]:
    """Yield the plants of the corpus, by what tells that they are private."""
    for plant in corpus.plants(seed):
        line = _class_of(plant)
        if line:
            redacted = redactor.redact_text(plant.text)[0]
            yield Outcome(line, f"{plant.kind.name}, {plant.setting}", found(plant.parts, redacted), redacted)


def _class_of(plant: corpus.Plant) -> str | None:
    kind = plant.kind
    if kind.category == "personal":
        if kind.shape != "value":
            return "class: personal data in printed lines"
        return "class: personal data beside its label" if plant.keyword else None
    if kind.shape != "value":
        return "class: secrets in native contexts"
    return "class: secrets of a known shape" if kind.by_sight else None


GOALS = {
    "command outputs": "95 %",
    "control: commands of these changed": "0 %",
    "control: harmless outputs changed": "0 %",
    "values said again": "99 %",
    "class: secrets of a known shape": "98 %",
    "class: secrets in native contexts": "92 %",
    "class: personal data beside its label": "85 %",
    "class: personal data in printed lines": "85 %",
}
_ORDER = (
    "command outputs",
    "by wrapper",
    "by tool",
    "control",
    "values when first shown",
    "values said again",
    "by value",
    "by form",
    "lines, plain",
    "lines behind",
    "class",
)


def _rank(line: str) -> int:
    return next(rank for rank, start in enumerate(_ORDER) if line.startswith(start))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table, a line of Markdown each."""
    counts: dict[str, list[bool]] = {}
    for each in outcomes:
        counts.setdefault(each.line, []).append(each.found)
    plain = counts.get("lines, plain", [])
    rows = ["| | planted | found | share | 95 % interval | goal |", "|---|--:|--:|--:|--:|--:|"]
    for line in sorted(counts, key=_rank):
        planted, hits = len(counts[line]), sum(counts[line])
        low, high = wilson_interval(hits, planted)
        goal = GOALS.get(line, "")
        if line.startswith("lines behind"):
            points = 100 * (hits / planted - sum(plain) / len(plain))
            goal = f"plain less 1 point: {points:+.1f}"
        interval = f"{_percent(low)} to {_percent(high)}"
        rows.append(f"| {line} | {planted} | {hits} | {_percent(hits / planted)} | {interval} | {goal} |")
    return rows


def missed(outcomes: Sequence[Outcome], seed: int) -> list[Outcome]:
    """Return examples of what was missed, and of false alarms, of as many labels as there is room for."""
    once: dict[tuple[str, str], Outcome] = {}
    for each in outcomes:
        if not each.line.startswith("by ") and each.found == each.line.startswith("control"):
            once.setdefault((each.line, each.label), each)
    rng, lines = random.Random(f"{seed} missed"), sorted({line for line, _ in once})
    queues = {line: [each for key, each in once.items() if key[0] == line] for line in lines}
    for queue in queues.values():
        rng.shuffle(queue)
    turns = [queue[turn] for turn in range(EXAMPLES) for queue in queues.values() if turn < len(queue)]
    return sorted(turns[:EXAMPLES])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=corpus.SEED)
    parser.add_argument("--missed", action="store_true", help=f"show up to {EXAMPLES} values that survived")
    parser.add_argument(
        "--list",
        choices=LISTS,
        default="first",
        help="commands and values; only the first has lines and classes",
    )
    given = parser.parse_args()
    redactor, kinds = Redactor(key=b"benchmark"), LISTS[given.list]
    outcomes = [
        outcome for measure in (commands, repeated) for outcome in measure(redactor, given.seed, kinds)
    ]
    if kinds is session_kinds:
        outcomes += [outcome for measure in (prefixed, classes) for outcome in measure(redactor, given.seed)]
    print(f"rules {RULES_VERSION}, seed {given.seed}\n")
    print("\n".join(table(outcomes)))
    if given.missed:
        for each in missed(outcomes, given.seed):
            print(f"\n{each.line}: {each.label}\n    " + each.redacted.strip()[:600].replace("\n", "\n    "))


if __name__ == "__main__":
    main()
