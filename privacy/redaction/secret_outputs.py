# ruff: noqa: E501 (patterns)
"""Redact results of calls whose command prints secrets or names of authors.

Such output has no name beside the value and often no format. Where the command prints only secrets, every
line of the result becomes a placeholder; where it prints more, only what can be a secret does. Text that a
harness, a shell or the command line itself adds stays, and so do error messages.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from tracemill.harnesses.agents.registry import harness_for, rule_of
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import action_command_line
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.core.entropy import is_password, is_plain_password, is_random, is_sealed
from tracemill.privacy.core.ordinary_values import is_ordinary
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import encode_rule_text
from tracemill.privacy.core.secret_names import secret_name_kind
from tracemill.privacy.core.secret_variables import is_secret_variable
from tracemill.privacy.core.set_passwords import is_scrambled_path
from tracemill.privacy.personal.author_formats import TRIGGER as AUTHORS
from tracemill.privacy.personal.author_formats import find_author_forms, find_authors
from tracemill.privacy.redaction.prefilter import Prefilter, Probe
from tracemill.privacy.redaction.redact_json import is_json, redact_json
from tracemill.privacy.redaction.redact_text import ScopedTextRedactor
from tracemill.privacy.secrets.environments import (
    find_settings,
    is_everybodys_variable,
    is_identity,
    is_private_setting,
)
from tracemill.privacy.secrets.printed_secrets import (
    PrintedOutput,
    find_printed_secrets,
    find_secrets_of_code,
    find_secrets_of_file,
)
from tracemill.privacy.secrets.secret_commands import (
    TRIGGER,
    is_name_of_secret,
    is_plain_fact,
    split_camel_case,
)
from tracemill.records.message import Message, ToolCall, read_arguments
from tracemill.records.trace import Context, Trace

_KIND = "SECRET"
_MOST_MARKS = 4  # lines of a harness before and after an output
_LEAST = 4  # least characters of a line that is redacted
_GIVES_SECRET = re.compile(
    r"(?i)(?:^|[_.-])(?:get|read|fetch|reveal|show|access|generate|create)[_-]?(?:secret|password|token|credential|api[_-]?key)s?"
    r"(?:[_-]?value)?$"
)
_MARK = re.compile(
    r"</?[a-z_-]+>(?:-?\d+</[a-z_-]+>)?|\[[A-Z(][^\]]* [^\]]*\]|\((?:no (?:output|content)|Open file|Current directory)[^)]*\)"
    r"|(?:=> |= )?(?:nil|null|undefined|None)|(?:iex|irb|pry|jshell|ghci|scala|In)\b[^\s>:]*(?: \[\d+\])?[>:]|bash-[\d.]*\$|OBSERVATION:|[\w.-]+@[\w.-]+:\S* ?[#$]|(?:[=\-*_#~]{3,}\s*)+|([=\-*_#~])\1{2,} .{1,40} \1{3,}|\W{0,3}"
)
_OUTER = re.compile(r"(?P<label>\s*(?:Output|Stdout|Result|stdout):[ \t]*)(?P<rest>.*)", re.DOTALL)
_OUTER_ONLY = re.compile(
    r"\s*(?:Exit code|Return code|Exit status|Process exited|Wall time|Chunk ID|Original token count|Total output lines|Stderr"
    r"|Signal|Background PIDs|Process Group PGID|Command|Directory|Duration|Status|Error)\b[: ].*",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"(?i)^(?:\[?(?:error|fatal|usage|traceback|exception|panic|failed|failure|unable|cannot|can't|could not|invalid|unknown|no such"
    r"|not (?:logged|signed|found|authenticated)|you (?:are|must|need|have)|please|access denied|permission denied|an error)\b)"
    r"|^(?:[\w./-]+: ){1,4}.*(?:not |no such|denied|cannot|can't|could not|unable|fail|invalid|unknown|unrecogni|illegal|missing"
    r"|unexpected|must |expected|expired|refused|is a directory|error|try |usage)|command not found|: error:|\berror:|does not exist"
)
_WARNED = re.compile(
    r"(?i)^(?:\S+: )?(?:\[?warn(?:ing)?\b|note:|hint:|info:|debug:|\[notice\])|^gpg: |^your .*(?:expire|update)"
)
_SENTENCE = re.compile(
    r"[\[(]?[A-Z][\w'-]*,?(?: [\w'\"`./:-]+,?){3,}[.:)\]!?]*|[A-Z][\w ]{8,}(?:for|is|to|of|in) .*:"
)
_NUMBERED = re.compile(r"\s{0,8}\d{1,6}(?:\u2192|\t|\||\) )|\d{1,6}:")
_PROMPT = re.compile(
    r"(?:>>>|\.\.\.|(?:In|Out) ?\[\d+\]:|=>|(?:irb|pry|iex)(?:\([^()\s]*\)|\d*)[\d:]*[>*]|\[\d+\] \w+\([^()]*\)>|(?:jshell|scala|ghci|groovy:\d+|user|utop|\u03bb|ruby|php|psql|\w+=[#>])>"
    r"|\$\d+ ==>|res\d+: [\w.\[\]]+ =|val \w+: [\w.\[\]]+ =|-+>|[=>D]|\[\d+\])[ \t]+(?=\S)"
)
"""What a console prints before a value."""
_LABEL = re.compile(
    r"(?P<label>\s*(?:\"[\w.@+-]{1,64}\"[ \t]+(?=\")|[\"']?(?:(?:export |set |- )?[A-Z][A-Z0-9_]{2,40}(?==)|[A-Za-z][a-z]{1,12}(?:[ _-]?[A-Za-z]{1,14}){0,3})[\"']?"
    r"(?:=|:[ \t]+|[ \t]{2,}(?:=[ \t]+)?|[ \t]=[ \t]|[ \t]*\|[ \t]*)))(?P<rest>\S.*)"
)
_PAIR = re.compile(
    r"\s*(?:\d{1,6}[:\t\u2192-]\s*)?(?:(?:export|set|-) )?[\"']?(?P<name>[A-Za-z_/][\w./-]*)[\"']?(?:\s*[:=]\s*|\s+)(?:REG_\w+\s+)?(?P<q>[\"']?)(?P<v>[^\s\"'](?:.*[^\s\"',;])?)(?P=q)[,;]?"
)
"""A name and its value on one line, as stores and `reg query` print them."""
_ALONE = re.compile(r"(?:\d{1,6}\) )?(?P<q>\"?)(?P<v>[^\s\"=]+=?=?)(?P=q)")
"""A name or a value that is a line of its own."""
_TEXT_OF_SECRET = re.compile(r"(?i)secret(?:string|binary)?|plaintext|password|passphrase")
_SHORT_LABEL = re.compile(
    r"(?i)(?:user(?:_?name)?|login|protocol|host|path|url|name|email|server|port|database|type|id"
    r"|category|title|label|reference|purpose|(?:created|updated|last_edited)_?(?:at|by)|revision_?date)$"
)
_VALUE = re.compile(r"(?P<open>[\"'`]?)(?P<v>.*?)(?P<close>[\"'`]?[,;]?)\s*", re.DOTALL)
_EMPTY = re.compile(
    r"(?i)[*\u2022x.\-]+|<[^<>]*>|\(?(?:null|none|nil|undefined|unset|set|not set|true|false|yes|no|ok|done|empty)\)?|System\.[\w.]+"
)
_IN_CELL = re.compile(r"[^\W\d_]|\d{4}")
_SPOKEN = re.compile(r"\s*(?:set )?(?P<name>[A-Za-z][\w-]*)[ \t]+(?P<q>[\"']?)(?P<v>[^\s\"'=:]{6,256})(?P=q)")
"""The name of a setting and its value, as files of settings of mail programs hold them."""
_LOGIN = re.compile(
    r"\s*(?:[\w.-]{1,60}[ ]?[:=][ ]+)?[\w.@+-]{2,60}(?: / |:)(?P<v>(?!\d+$|\d\d:|//)[^\s/:]{6,128})"
)
"""A user and a password on a line of their own."""
_WORD = re.compile(r"[^\s\"'`,;<>(){}\[\]|]{8,512}")
_NAME_BEFORE = re.compile(r"[\w.-]{2,40}[=:](?=[^\s=:]{6,})")
_VARIABLE = re.compile(r"(?:export |declare -x )?[A-Z_][A-Z0-9_]*=")
_FILE = re.compile(r"[\w@+-][\w.@+-]*\.\w{1,5}:?|.*/|[-dlcbps][rwxsStT-]{9}[.+@]?|\d+(?:\.\d+)*\w{0,3}")
_PHRASE = re.compile(r"[a-z]{3,12}(?:-[a-z]{3,12}){2,7}")
_HASH = re.compile(r"[0-9a-f]{7,40}(?:\.{2,3}[0-9a-f]{7,40})?|[0-9a-f]{64}|sha\d{1,3}[:-].*")


@cache
def _trigger() -> Prefilter:
    return Prefilter([Probe(TRIGGER, 1), Probe(AUTHORS, 1)], kept_as="outputs")


def take_secret_outputs(trace: Trace, leaf: ScopedTextRedactor) -> Trace:
    """Replace secrets in the results of calls that print them; same trace where there are none."""
    outputs = _Outputs(trace.harness, leaf)
    contexts = tuple(map(outputs.context, trace.contexts))
    if all(new is old for new, old in zip(contexts, trace.contexts, strict=True)):
        return trace
    return replace(trace, contexts=contexts)


class _Judged(NamedTuple):
    """The private parts in the output of a call: secrets, or author names in lines of some formats.

    `line` is the command line of the call.
    """

    printed: PrintedOutput | None
    line: str
    authors: tuple[re.Pattern[str], ...] = ()


class _Outputs:
    """A redactor of the contexts of one trace; a shared message is redacted once."""

    def __init__(self, harness: str, leaf: ScopedTextRedactor) -> None:
        self._harness, self._leaf = harness, leaf
        self._written = harness_for(harness)
        self._made: dict[tuple[int, str], Message] = {}

    def context(self, context: Context) -> Context:
        """Return the context with its results redacted."""
        waiting: dict[str, _Judged] = {}
        written: _Judged | None = None
        changed: dict[int, Message] = {}
        for at, message in enumerate(context.messages):
            if message.role == "assistant":
                found = [(call, judged) for call in message.tool_calls if (judged := self._judge(call))]
                waiting |= {call.id: judged for call, judged in found}
                written = None if message.tool_calls else self._judge_text(message.content)
            elif message.role in ("tool", "user"):
                judged = waiting.get(message.tool_call_id) if message.tool_call_id else written
                if judged and message.content and not message.is_error:
                    changed[at] = self._redacted(message, judged)
                written = None
        if all(context.messages[at] is new for at, new in changed.items()):
            return context
        return replace(
            context, messages=tuple(changed.get(at, old) for at, old in enumerate(context.messages))
        )

    def _judge_text(self, text: str) -> _Judged | None:
        """Judge the call that is written in a text, in harnesses that act that way."""
        if not text or not (self._written.results_as_user or "<function=" in text) or not _is_triggered(text):
            return None
        calls = calls_in_text(text, self._harness)
        return self._judge(calls[0]) if len(calls) == 1 else None

    def _judge(self, call: ToolCall) -> _Judged | None:
        """Judge what the result of a call holds; None where it is not redacted."""
        if _GIVES_SECRET.search(call.name):
            return _Judged(PrintedOutput(True), call.arguments)
        if not _is_triggered(call.arguments):
            return None
        rule, arguments = rule_of(self._harness, call.name), read_arguments(call.arguments)
        if rule is None or arguments is None:
            return None
        printed, line = None, None
        authors: tuple[re.Pattern[str], ...] = ()
        if rule.reading == "shell":
            line = action_command_line(arguments, rule)
            printed = find_printed_secrets(line) if line else None
            authors = find_author_forms(line) if line else ()
        elif rule.operation == Operation.RUN:
            line = next(
                (each for each in (arguments.get("code"), arguments.get("script")) if isinstance(each, str)),
                None,
            )
            printed = find_secrets_of_code(line) if line else None
        elif rule.operation == Operation.READ or arguments.get("command") == "view":
            line = next((each for name in rule.paths if isinstance(each := arguments.get(name), str)), None)
            printed = find_secrets_of_file(line) if line else None
        return _Judged(printed, line, authors) if line and (printed or authors) else None

    def _redacted(self, message: Message, judged: _Judged) -> Message:
        key = (id(message), judged.line)
        if key not in self._made:
            content = self._without_authors(message.content, judged.authors)
            if judged.printed:
                content = _Result(self._leaf, judged.printed, judged.line).redact(content)
            self._made[key] = message if content == message.content else replace(message, content=content)
        return self._made[key]

    def _without_authors(self, text: str, forms: tuple[re.Pattern[str], ...]) -> str:
        """Return the text without the names in lines of these formats."""
        if not forms:
            return text
        lines = text.splitlines(keepends=True)
        for at, line in enumerate(lines):
            for start, end in sorted(find_authors(forms, line), reverse=True):
                name = lines[at][start:end]
                if not self._leaf.detectors.is_allowed(name):
                    lines[at] = lines[at][:start] + self._leaf.take("PERSON", name) + lines[at][end:]
        return "".join(lines)


def _is_triggered(text: str) -> bool:
    return bool(_trigger().bits(encode_rule_text(text), []))


class _Result:
    """The result of one call; words of its command line `line` are no secrets."""

    def __init__(self, leaf: ScopedTextRedactor, printed: PrintedOutput, line: str) -> None:
        self._leaf, self._printed, self._line = leaf, printed, line
        self._named = False

    def redact(self, text: str) -> str:
        """Return the text without its secrets."""
        if is_json(text):
            return redact_json(text, self._json_leaf())
        lines = text.splitlines(keepends=True)
        self._named = any(_VARIABLE.match(line) for line in lines)
        printed = [at for at, line in enumerate(lines) if self._is_output(line.strip())]
        if not printed:
            return text
        failed = _FAILED.search(_bare(lines[printed[0]]))
        if failed:
            return (
                text
                if len(printed) == 1 or failed[0].lower().startswith("usage")
                else "".join(map(self._words, lines))
            )
        if found := _find_json(lines):
            start, end = found
            body = redact_json("".join(lines[start:end]), self._json_leaf())
            rest = (*map(self._words, lines[:start]), body, *map(self._words, lines[end:]))
            return "".join(rest)
        if self._printed.pairs:
            return self._pairs(lines, printed)
        if self._printed.whole:
            for at in printed:
                lines[at] = self._whole(lines[at])
            return "".join(lines)
        if self._printed.last and (start := _find_last_json(lines, printed)) is not None:
            body = redact_json("".join(lines[start : printed[-1] + 1]), self._leaf_value)
            return "".join((*map(self._words, lines[:start]), body, *lines[printed[-1] + 1 :]))
        edges = {printed[0]} if self._printed.first else set()
        edges |= {printed[-1]} if self._printed.last else set()
        return "".join(
            self._edge(line) if at in edges else self._words(line) for at, line in enumerate(lines)
        )

    def _json_leaf(self) -> Callable[[str, str], str]:
        """Return what redacts a string of a printed JSON document."""
        if self._printed.pairs:
            return self._named_leaf
        return self._setting_leaf if self._printed.settings else self._leaf_value

    def _pairs(self, lines: list[str], printed: list[int]) -> str:
        """Redact the values under names of secrets, of which each stands on its line or the next one."""
        before = ""
        for at in printed:
            line = lines[at]
            pair, alone = _PAIR.fullmatch(line.rstrip()), _ALONE.fullmatch(line.strip())
            if pair and self._is_named(pair["name"], pair["v"]):
                start, end = pair.span("v")
                lines[at] = line[:start] + self._take(pair["v"]) + line[end:]
            elif alone and before and self._is_named(before, alone["v"]):
                lines[at] = line.replace(alone["v"], self._take(alone["v"]))
                before = ""
                continue
            before = alone["v"] if alone else ""
        return "".join(lines)

    def _is_named(self, name: str, value: str) -> bool:
        """Tell whether a value under a name is a secret by its name."""
        name = split_camel_case(re.split(r"[/.:]", name)[-1])
        if not is_name_of_secret(name):
            return False
        shaped = is_secret_variable(name, value) and (is_password(value) or is_random(value))
        return shaped or bool(secret_name_kind(name, value, True))

    def _named_leaf(self, value: str, name: str) -> str:
        """Redact a string of a printed JSON document under the name of a secret."""
        return self._take(value) if name and self._is_named(name, value) else value

    def _is_output(self, line: str) -> bool:
        """Tell whether a line is output of the command, and no mark, prompt or warning."""
        if self._printed.settings and line[:1] == "[" and "=" in line:
            return True
        if not line or _MARK.fullmatch(line) or _OUTER_ONLY.fullmatch(line) or _WARNED.search(line):
            return False
        if (outer := _OUTER.fullmatch(line)) and not outer["rest"].strip():
            return False
        return line not in self._line

    def _whole(self, line: str) -> str:
        """Redact a line that is a secret, except its label and words of the command line."""
        start = self._start(line)
        body, end = line[start:].rstrip(), len(line.rstrip())
        if _FAILED.search(body):
            return line
        if _SENTENCE.fullmatch(body):
            return self._words(line)
        if label := _LABEL.fullmatch(body):
            start += label.start("rest")
            name = label["label"].strip(" \t=:|\"'")
            if _SHORT_LABEL.search(name) and not is_password(label["rest"]):
                return line
            if is_plain_fact(name.replace(" ", "_")):
                return line
        value = _VALUE.fullmatch(line, start, end)
        return (
            line
            if value is None
            else line[: value.start("v")] + self._take(value["v"]) + line[value.end("v") :]
        )

    def _start(self, line: str) -> int:
        """Return where the output begins in a line.

        It begins after a line number, a label of the harness and words of the command line.
        """
        start = len(line) - len(line.lstrip())
        if number := _NUMBERED.match(line):
            start = number.end()
        if outer := _OUTER.match(line, start):
            start = outer.start("rest")
        if prompt := _PROMPT.match(line, start):
            start = prompt.end()
        for end in range(len(line) - 1, start, -1):
            if line[end - 1] in " =:'\"([{" and line[start:end] in self._line:
                return end
        return start

    def _edge(self, line: str) -> str:
        """Redact a line that is expected to be a secret, beside lines of other commands."""
        word = line[self._start(line) :].strip().strip("\"'`")
        shaped = (
            is_password(word)
            or is_plain_password(word)
            or is_random(word)
            or is_scrambled_path(word)
            or _PHRASE.fullmatch(word)
        )
        if not shaped or (_FILE.fullmatch(word) and not ("." not in word and is_random(word))):
            return self._words(line)
        return self._whole(line)

    def _words(self, line: str) -> str:
        """Redact each word of a line that can only be a secret."""
        if not self._is_output(line.strip()) or _FAILED.search(line):
            return line
        line = self._cells(line)
        if _is_plain_setting(line):
            return line
        line = self._settings(line)
        if (spoken := _SPOKEN.fullmatch(line.rstrip())) and self._is_named(spoken["name"], spoken["v"]):
            line = line[: spoken.start("v")] + self._take(spoken["v"]) + line[spoken.end("v") :]
        if self._printed.alone and (pair := _LOGIN.fullmatch(line.rstrip())) and is_password(pair["v"]):
            start, end = pair.span("v")
            line = line[:start] + self._take(pair["v"]) + line[end:]
        fixed = find_keyed_placeholders(line)
        return _WORD.sub(lambda word: self._word(word, fixed), line)

    def _cells(self, line: str) -> str:
        """Redact the cells of a printed row that stand in columns of secrets."""
        secret = self._printed.columns
        for sign in "|\t" if secret else "":
            cells = line.split(sign)
            first = int(not cells[0].strip())
            if len(cells) == len(secret) + 2 * first:
                for at, cell in enumerate(cells[first : first + len(secret)], first):
                    if secret[at - first] and _IN_CELL.search(value := cell.strip()):
                        cells[at] = cell.replace(value, self._take(value))
                return sign.join(cells)
        return line

    def _settings(self, line: str) -> str:
        """Redact the values of settings in a line that can be secrets."""
        for name, value, start, end in reversed(list(find_settings(line))):
            if is_private_setting(name, value) and not is_identity(name):
                line = line[:start] + self._take(value) + line[end:]
        return line

    def _word(self, found: re.Match[str], fixed: list[tuple[int, int]]) -> str:
        word = found[0]
        if is_sealed(word) or any(start < found.end() and found.start() < end for start, end in fixed):
            return word
        name = _NAME_BEFORE.match(word)
        value = word[name.end() :] if name else word
        if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
            return word
        if value in self._line or "://" in value or _FILE.fullmatch(value):
            return word
        if name and is_everybodys_variable(name[0][:-1]):
            return word
        if _HASH.fullmatch(value) and not self._is_part_of_value(found):
            return word
        if judge_distinctiveness(value) is not Distinctiveness.ANYWHERE and not (
            self._printed.alone and is_private_setting("", value)
        ):
            return word
        return word[: len(word) - len(value)] + self._take(value)

    def _is_part_of_value(self, hash_like: re.Match[str]) -> bool:
        """Tell whether a word like a digest is printed as a secret.

        Among lines of an environment it is one where it is a line of its own: the value of a line above goes on.
        """
        if not self._printed.alone:
            return False
        return not self._printed.settings or (self._named and hash_like.string.strip() == hash_like[0])

    def _leaf_value(self, value: str, name: str) -> str:
        """Redact a string of a printed JSON document."""
        if is_json(value):
            return redact_json(value, self._leaf_value)
        if not name:
            return self._take(value) if is_private_setting(name, value) else value
        if (
            len(value) < _LEAST
            or _SHORT_LABEL.search(name)
            or is_plain_fact(name)
            or ("\n" not in value and " " in value.strip() and not _TEXT_OF_SECRET.fullmatch(name))
        ):
            return value
        return self._take(value)

    def _setting_leaf(self, value: str, name: str) -> str:
        """Redact a string of a JSON document of settings: `NAME=value`, or a value under its name."""
        if is_json(value):
            return redact_json(value, self._setting_leaf)
        if not name or _NAME_BEFORE.match(value):
            return self._settings(value)
        if is_identity(name) or not is_private_setting(name, value):
            return value
        return self._take(value)

    def _take(self, value: str) -> str:
        """Return the placeholder of a secret, or the value itself where it can be none."""
        if (
            len(value) < _LEAST
            or _EMPTY.fullmatch(value)
            or value in self._line
            or is_sealed(value)
            or find_keyed_placeholders(value)
        ):
            return value
        ordinary = is_ordinary(value) and not value.isdigit() and not is_scrambled_path(value)
        if ordinary or self._leaf.detectors.is_allowed(value):
            return value
        return self._leaf.take(_KIND, value)


def _is_plain_setting(line: str) -> bool:
    """Tell whether a line is one setting that holds an id, a digest or the name of another thing."""
    settings = list(find_settings(line))
    if len(settings) != 1 or " " in line[settings[0].start :].strip():
        return False
    name, value = settings[0][:2]
    other = is_identity(name) and not is_name_of_secret(name)
    return other or (name == "key" and not is_private_setting(name, value))


def _find_json(lines: list[str]) -> tuple[int, int] | None:
    """Return where the lines of a JSON document begin and end that stands among marks of a harness."""
    start = next((at for at, line in enumerate(lines) if line[:1] in "{["), len(lines))
    if start > _MOST_MARKS:
        return None
    for end in range(len(lines), max(start, len(lines) - _MOST_MARKS), -1):
        if lines[end - 1].rstrip()[-1:] in "}]" and is_json("".join(lines[start:end])):
            return start, end
    return None


def _find_last_json(lines: list[str], printed: list[int]) -> int | None:
    """Return the line where a JSON document begins that ends with the last printed line."""
    starts = (at for at in printed if lines[at][:1] in "{[")
    return next((at for at in starts if is_json("".join(lines[at : printed[-1] + 1]))), None)


def _bare(line: str) -> str:
    return line.strip().removeprefix("Output: ")
