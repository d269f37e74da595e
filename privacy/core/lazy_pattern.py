"""Define patterns that are compiled when first used.

The rules have some seven hundred patterns, which take half a second to compile; a text needs few of them.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import AnyStr, Generic

_END = sys.maxsize


class LazyPattern(Generic[AnyStr]):
    """A regular expression with the methods of `re.Pattern`, compiled at the first call of one.

    A fault in the expression raises `re.error` there.
    """

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        """Take the expression and the flags of `re.compile`."""
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[AnyStr]:
        """Return the compiled expression."""
        return re.compile(self.pattern, self._flags)

    @property
    def groupindex(self) -> Mapping[str, int]:
        """Return the numbers of the named groups."""
        return self.compiled.groupindex

    def match(self, text: AnyStr, pos: int = 0, endpos: int = _END) -> re.Match[AnyStr] | None:
        """Match at the start of a text."""
        return self.compiled.match(text, pos, endpos)

    def fullmatch(self, text: AnyStr, pos: int = 0, endpos: int = _END) -> re.Match[AnyStr] | None:
        """Match the whole of a text."""
        return self.compiled.fullmatch(text, pos, endpos)

    def search(self, text: AnyStr, pos: int = 0, endpos: int = _END) -> re.Match[AnyStr] | None:
        """Find the first match in a text."""
        return self.compiled.search(text, pos, endpos)

    def finditer(self, text: AnyStr, pos: int = 0, endpos: int = _END) -> Iterator[re.Match[AnyStr]]:
        """Find all matches in a text that do not overlap."""
        return self.compiled.finditer(text, pos, endpos)

    def findall(self, text: AnyStr, pos: int = 0, endpos: int = _END) -> list[AnyStr]:
        """Return the text of all matches, or of their group where the expression has one."""
        return self.compiled.findall(text, pos, endpos)

    def split(self, text: AnyStr, maxsplit: int = 0) -> list[AnyStr]:
        """Split a text at the matches."""
        return self.compiled.split(text, maxsplit)

    def sub(
        self, repl: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0
    ) -> AnyStr:
        """Replace the matches in a text."""
        return self.compiled.sub(repl, text, count)
