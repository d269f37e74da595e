"""Command lines, read as far as comparing and sorting them needs.

A line is cut into simple commands with the operators between them. Quotes are removed, here-documents
taken out, `$(...)` kept as it is written. Nothing is expanded or run. What cannot be read gives None,
and its reader falls back to the text.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from tracemill.records.fast_dataclass import quick_init
from tracemill.records.placeholders import strip_placeholder_angles

_HEREDOC = re.compile(
    r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<tag>[A-Za-z_]\w*)(?P=quote)(?P<rest>[^\n]*)\n"
    r"(?P<body>(?:.*\n)*?)[ \t]*(?P=tag)(?=[ \t]*(?:\n|\)|$))"
)
_TOKEN = re.compile(
    r"""
    (?P<plain>[^\s'"\\|&;<>()`$\d\#][^\s'"\\|&;<>()`$]*+)(?=[\s|&;<>()]|\Z)[ \t\r]*+
  | (?P<blank>[ \t\r]++|\\\n)
  | (?P<comment>(?<![^\s;|&()])\#[^\n]*)
  | (?P<redirect>\d*(?:<<<|<<-?|>>|>&|<&|>\||<>|>|<)|&>>?)
  | (?P<operator>&&|\|\||;;|\|&|[|;&\n()])
  | (?P<word>(?:
        [^\s'"\\|&;<>()`$]++
      | '[^']*+'
      | "(?:\\.|\$\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\)|[^"\\])*+"
      | \\.
      | \$'(?:\\.|[^'\\])*+'
      | \$\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\))*+\)
      | \$
      | `[^`]*+`
    )++)
    """,
    re.VERBOSE | re.DOTALL,
)
_SPECIAL = re.compile(r"""['"\\|&;<>()`$\#]|[^\S \t\r]""")
"""A line without any of these is one command: its words between blanks."""
_QUOTED = re.compile(r"""\$?'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|([^'"\\]+)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`\n])')
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_VARIABLE = re.compile(r"\$[A-Za-z0-9_{@#?!*]")
_KEYWORDS = frozenset("do then else elif if while until ! { } time fi done".split())  # noqa: SIM905
_MARK = re.compile(r"\x00(\d+)\x00")
_TABS = re.compile(r"(?m)^\t+")
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
_Body = tuple[str, bool]
"""A here-document, and whether the shell expands something in it."""


@quick_init
@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command.

    `joiner` is the operator before it: empty for the first, `;` for a newline too, `(` and `)` where a
    subshell begins or has ended. `keywords` are the words of loops and conditions before it (`do`, `then`,
    `done`, ...), and `&` where it is the last and runs in the background. `redirects` are (operator, target)
    in order, `("<<", "expanded")` where the shell expands `heredoc`, the text of a here-document.
    """

    argv: tuple[str, ...]
    joiner: str = ""
    keywords: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()
    heredoc: str | None = None

    @property
    def writes_to(self) -> str | None:
        """The file its standard output goes to, if any."""
        if not self.redirects:
            return None
        for operator, target in self.redirects:
            if operator in (">", ">>", ">|", "&>", "&>>", "1>", "1>>") and target != "/dev/null":
                return target
        return None

    @property
    def appends(self) -> bool:
        """True where the output is added to the end of a file."""
        return any(operator.endswith(">>") for operator, _ in self.redirects)


class _Building:
    """A simple command while its tokens arrive; `pending` is a redirect that waits for its target."""

    __slots__ = ("heredoc", "joiner", "pending", "redirects", "words")

    def __init__(self, joiner: str = "") -> None:
        self.joiner = joiner
        self.words: list[str] = []
        self.redirects: list[tuple[str, str]] = []
        self.heredoc: str | None = None
        self.pending = ""

    def add_word(self, token: str, bodies: list[_Body]) -> None:
        """Takes a word: a here-document, the target of a redirect, or an argument."""
        whole = _MARK.fullmatch(token) if bodies else None
        if whole:
            self.heredoc, expanded = bodies[int(whole[1])]
            self.redirects += [("<<", "expanded")] if expanded else []
            return
        word = _in_quotes(token) if self._is_no_pattern(token) else unquote_line_word(token)
        if bodies:
            word = _MARK.sub(lambda mark: "<<" + bodies[int(mark[1])][0], word)
        if self.pending:
            self.redirects.append((self.pending, word))
            self.pending = ""
        else:
            self.words.append(word)

    def _is_no_pattern(self, token: str) -> bool:
        """True for a file name or a text with a quoted `*`: without its quotes it would read as a pattern of
        names. What a program reads as a pattern itself is none."""
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

    def finish(self) -> Simple | None:
        """The command; None where nothing of it came."""
        words = self.words
        if not words and not self.redirects and self.heredoc is None:
            return None
        start = 0
        for word in words:
            if word not in _KEYWORDS and not ("=" in word and _ASSIGNMENT.match(word)):
                break
            start += 1
        keywords: tuple[str, ...] = ()
        assignments: tuple[str, ...] = ()
        if start:
            keywords = tuple([word for word in words[:start] if word in _KEYWORDS])
            assignments = tuple([word for word in words[:start] if word not in _KEYWORDS])
            words = words[start:]
        return Simple(tuple(words), self.joiner, keywords, assignments, tuple(self.redirects), self.heredoc)


@lru_cache(maxsize=512)
def parse_command(line: str) -> tuple[Simple, ...] | None:
    """The simple commands of a command line, in order; None where it cannot be read. What redaction left in
    place of a value is a word."""
    if "\x00" in line:
        return None
    line = strip_placeholder_angles(line)
    if not _SPECIAL.search(line):
        only = _Building()
        only.words = line.split()
        command = only.finish()
        return () if command is None else (command,)
    bodies: list[_Body] = []
    built = _built(_take_heredocs(line, bodies), bodies)
    if built is None:
        return None
    found = [command for each in built if (command := each.finish()) is not None]
    if found and built[-1].joiner == "&" and built[-1].finish() is None:
        found[-1] = replace(found[-1], keywords=(*found[-1].keywords, "&"))
    return tuple(found)


def _built(text: str, bodies: list[_Body]) -> list[_Building] | None:
    """The commands between the operators of a text, empty ones too; None where some of it is no token. Most
    words are `plain` ones without quotes, taken with the blanks behind them."""
    built = [_Building()]
    position = 0
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if start != position:
            return None
        position = end
        kind = match.lastgroup
        current = built[-1]
        if kind == "plain" and not (bodies or current.pending):
            current.words.append(match[1])
        elif kind == "plain" or kind == "word":
            current.add_word(match[kind], bodies)
        elif kind == "blank" or kind == "comment":
            continue
        elif current.pending:
            return None
        elif kind == "redirect":
            current.pending = match[0]
        else:
            built.append(_Building(joiner=";" if match[0] == "\n" else match[0]))
    return built if position == len(text) and not built[-1].pending else None


def unquote_line_word(word: str) -> str:
    """A word without its quotes.

    As written stays a word with `$(...)` or backticks, one that quotes a `$name`, and one with escapes in
    `$'...'`: without its quotes it would read as another.
    """
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    if "$(" in word or "`" in word or ("$'" in word and "\\" in word):
        return word
    if ("'" in word or "\\$" in word) and _VARIABLE.search(word):
        return word
    parts = _QUOTED.findall(word)
    return "".join(
        single or (_ESCAPED.sub(_first, double) if "\\" in double else double) or escaped or plain
        for single, double, escaped, plain in parts
    )


def _in_quotes(token: str) -> str:
    """A word with the quotes that it needs, whichever it was given."""
    if not _ONE_QUOTED.fullmatch(token) or "$" in token or "`" in token:
        return token
    return f"'{token[1:-1]}'"


def _first(found: re.Match[str]) -> str:
    return found[1]


def _take_heredocs(line: str, bodies: list[_Body]) -> str:
    if "<<" not in line:
        return line

    def take(match: re.Match[str]) -> str:
        body = _TABS.sub("", match["body"]) if match["dash"] else match["body"]
        bodies.append((body, not match["quote"] and _EXPANDED.search(body) is not None))
        return f" \x00{len(bodies) - 1}\x00 {match['rest']}"

    return _HEREDOC.sub(take, line)
