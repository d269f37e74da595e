"""Find out whether a command line ends inside a quote, so that the shell waits for more or refuses it."""

import re
from functools import lru_cache

from tracemill.harnesses.shell.parse_line import parse_command

_HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>['\"]?)\\?(?P<tag>[\w.-]+)(?P=quote)")
_ANSI = re.compile(r"\$'(?:\\.|[^'\\])*'", re.DOTALL)
_BEFORE_COMMENT = frozenset(" \t\n;&|(")


@lru_cache(maxsize=512)
def ends_in_quote(line: str) -> bool:
    """Return whether a quote is not closed at the end of a line, False where unsure.

    Follows the quoting rules of the POSIX shell (XCU 2.2) and Bash; here-documents and comments are skipped.
    """
    return ("'" in line or '"' in line) and parse_command(line) is None and _QuoteScanner(line).open


class _QuoteScanner:
    """A scanner of a line; `within` lists the enclosing openers, innermost last.

    Openers are a double quote, a backtick, and the brackets of `$(`, `(` and `${`.
    """

    def __init__(self, line: str) -> None:
        self.line, self.at = line, 0
        self.within: list[str] = []
        self.tags: list[str] = []
        self.open = self._ends_open()

    def _ends_open(self) -> bool:
        while self.at < len(self.line):
            if self.line[self.at] == "\\":
                self.at += 2
            elif '"' in self.within and self.within[-1] in '"{':
                self._quoted()
            elif self._single_left_open():
                return True
        return '"' in self.within

    def _quoted(self) -> None:
        here, top = self.line[self.at], self.within[-1]
        if here == '"' == top or (here == "}" and top == "{"):
            self.within.pop()
        elif not self._opened() and here == '"':
            self.within.append(here)
        self.at += 1

    def _opened(self) -> bool:
        """Skip `$(`, `${` or a backtick, and return whether there was one."""
        here = self.line[self.at]
        if here == "`":
            if "`" in self.within:
                del self.within[self.within.index("`") :]
            else:
                self.within.append(here)
            return True
        if here == "$" and self.line[self.at + 1 : self.at + 2] in ("(", "{"):
            self.at += 1
            self.within.append(self.line[self.at])
            return True
        return False

    def _single_left_open(self) -> bool:
        """Skip a token outside of double quotes; return True where a single quote is not closed."""
        line, here = self.line, self.line[self.at]
        if here == "'" or line.startswith("$'", self.at):
            match = _ANSI.match(line, self.at) if here == "$" else None
            end = line.find("'", self.at + 1) + 1 if here == "'" else match.end() if match else 0
            self.at = end
            return end == 0
        if here == "#" and (self.at == 0 or line[self.at - 1] in _BEFORE_COMMENT):
            end = line.find("\n", self.at)
            self.at = len(line) if end < 0 else end
        elif here == "\n" and self.tags:
            self._skip_documents()
        elif here == "<" and (tag := _HEREDOC.match(line, self.at)):
            self.tags.append(tag["tag"])
            self.at = tag.end()
        elif line.startswith("<<<", self.at):
            self.at += 3
        else:
            self._bracketed()
            self.at += 1
        return False

    def _bracketed(self) -> None:
        here = self.line[self.at]
        top = self.within[-1] if self.within else ""
        if (here == ")" and top == "(") or (here == "}" and top == "{"):
            self.within.pop()
        elif not self._opened() and here in '"(':
            self.within.append(here)

    def _skip_documents(self) -> None:
        for tag in self.tags:
            end = re.compile(rf"\n[ \t]*{re.escape(tag)}(?=[ \t]*(?:\n|\)|\Z))").search(self.line, self.at)
            self.at = end.end() if end else len(self.line)
        self.tags.clear()
