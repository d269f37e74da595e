"""Parse command lines, as far as comparing and classifying them needs.

A line is split into simple commands with the operators between them (`bash_tree`). Quotes are removed,
here-documents taken out, `$(...)` kept as written. Nothing is expanded or run. A line that the grammar of
bash does not parse gives None.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from tracemill.harnesses.shell.bash_tree import bash_tokens
from tracemill.records.placeholders import strip_placeholder_angles

_QUOTED = re.compile(r"""\$?'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|([^'"\\]+)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`\n])')
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_VARIABLE = re.compile(r"\$[A-Za-z0-9_{@#?!*]")
_KEYWORDS = frozenset("do then else elif if while until ! { } time fi done".split())  # noqa: SIM905
_EXPANDED = re.compile(r"[$`\\]")
_LITERAL = re.compile(
    r"""'[^']*(?:[*?\[]|\{[^'}]*(?:,|\.\.))|"[^"]*(?:[*?\[]|\{[^"}]*(?:,|\.\.))|\\[*?\[{]|\A['"\\]~"""
)
_WITH_FILES = (
    "cat chmod chown cp du head less ln ls mkdir more mv nl rm rmdir stat tail tee touch truncate wc"
)
_OF_FILES = frozenset(_WITH_FILES.split())
_PATTERN_FIRST = frozenset("grep egrep fgrep zgrep rg sed perl awk".split())  # noqa: SIM905
_BEFORE_PATTERN = frozenset("-e -E -g -m -t --include --exclude --exclude-dir --glob --iglob".split())  # noqa: SIM905
_GIT_OF_FILES = frozenset("add rm mv checkout restore reset diff log show commit stash ls-files".split())  # noqa: SIM905
_PRINTED = frozenset({"echo", "printf"})
_ONE_QUOTED = re.compile(r"""'[^']*'|"[^"\\$`']*\"""")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command.

    `joiner` is the operator before it: "" for the first, `;` for a newline too, `(` and `)` where a subshell
    begins or has ended. `keywords` are the words of loops and conditions before it (`do`, `then`, `done`,
    ...), and `&` where it is the last and runs in the background. `redirects` are (operator, target) in
    order, `("<<", "expanded")` where the shell expands `heredoc`, the text of a here-document.
    """

    argv: tuple[str, ...]
    joiner: str = ""
    keywords: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()
    heredoc: str | None = None

    @property
    def writes_to(self) -> str | None:
        """Return the file its standard output goes to, None if there is none."""
        if not self.redirects:
            return None
        for operator, target in self.redirects:
            if operator in (">", ">>", ">|", "&>", "&>>", "1>", "1>>") and target != "/dev/null":
                return target
        return None

    @property
    def appends(self) -> bool:
        """Return whether the output is appended to a file."""
        return any(operator.endswith(">>") for operator, _ in self.redirects)


class _CommandBuilder:
    """A simple command under construction; `pending` is a redirect that waits for its target."""

    __slots__ = ("heredoc", "joiner", "pending", "redirects", "words")

    def __init__(self, joiner: str = "") -> None:
        self.joiner = joiner
        self.words: list[str] = []
        self.redirects: list[tuple[str, str]] = []
        self.heredoc: str | None = None
        self.pending = ""

    def add_document(self, body: str) -> None:
        """Add a here-document; `body` begins with its first line."""
        expanded, _, self.heredoc = body.partition("\n")
        self.redirects += [("<<", "expanded")] if expanded and _EXPANDED.search(self.heredoc) else []

    def add_word(self, token: str) -> None:
        """Add a word: the target of a redirect, or an argument."""
        word = _single_quoted(token) if self._is_literal(token) else unquote_line_word(token)
        if self.pending:
            self.redirects.append((self.pending, word))
            self.pending = ""
        else:
            self.words.append(word)

    def _is_literal(self, token: str) -> bool:
        """Return whether a token is a file name or text with a quoted `*`.

        Without its quotes it would read as a pattern. What a program reads as a pattern itself is not one.
        """
        if not _LITERAL.search(token):
            return False
        words = self.words
        if self.pending or not _OF_FILES.isdisjoint(words) or not _PRINTED.isdisjoint(words[:2]):
            return True
        if not words or words[-1] in _BEFORE_PATTERN or token.startswith("-"):
            return False
        if "git" in words[:2]:
            return not _GIT_OF_FILES.isdisjoint(words) and (words[-1] == "--" or words[-1][:1] != "-")
        program = next((at for at, word in enumerate(words) if word in _PATTERN_FIRST), len(words))
        return any(word[:1] != "-" and not word.isdigit() for word in words[program + 1 :])

    def finish(self) -> SimpleCommand | None:
        """Return the command, None if it is empty."""
        words = self.words
        if not words and not self.redirects and self.heredoc is None:
            return None
        prefix = list(takewhile(lambda word: word in _KEYWORDS or _ASSIGNMENT.match(word), words))
        return SimpleCommand(
            tuple(words[len(prefix) :]),
            self.joiner,
            tuple(word for word in prefix if word in _KEYWORDS),
            tuple(word for word in prefix if word not in _KEYWORDS),
            tuple(self.redirects),
            self.heredoc,
        )


@lru_cache(maxsize=512)
def parse_command(line: str) -> tuple[SimpleCommand, ...] | None:
    """Return the simple commands of a command line in order, None if it cannot be parsed.

    A placeholder of redaction is a word.
    """
    tokens = bash_tokens(strip_placeholder_angles(line))
    if tokens is None:
        return None
    built = [_CommandBuilder()]
    for kind, text in tokens:
        current = built[-1]
        if kind == "operator":
            built.append(_CommandBuilder(joiner=text))
        elif kind == "redirect":
            current.pending = text
        elif kind == "document":
            current.add_document(text)
        else:
            current.add_word(text)
    commands = [command for each in built if (command := each.finish()) is not None]
    if commands and built[-1].joiner == "&" and built[-1].finish() is None:
        commands[-1] = replace(commands[-1], keywords=(*commands[-1].keywords, "&"))
    return tuple(commands)


def unquote_line_word(word: str) -> str:
    """Return a word without its quotes.

    Words with `$(...)` or backticks, with a quoted `$name`, or with escapes in `$'...'` stay as written:
    without their quotes they would mean something else.
    """
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    if "$(" in word or "`" in word or ("$'" in word and "\\" in word):
        return word
    if ("'" in word or "\\$" in word) and _VARIABLE.search(word):
        return word
    parts = _QUOTED.findall(word)
    return "".join(
        single or _ESCAPED.sub(r"\1", double) or escaped or plain for single, double, escaped, plain in parts
    )


def _single_quoted(token: str) -> str:
    """Return a quoted word in single quotes, where the kind of quotes does not matter."""
    if not _ONE_QUOTED.fullmatch(token) or "$" in token or "`" in token:
        return token
    return f"'{token[1:-1]}'"
