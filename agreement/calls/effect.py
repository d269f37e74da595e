"""What a call does, in the terms the ladder compares: one deed, or several for a command line."""

import posixpath
import re
from dataclasses import dataclass
from typing import Any

from tracemill.agreement.files.file_text import FileText
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.fast_dataclass import quick_init

_WORD = re.compile(r"[^\W_]+")
_SCRATCH = re.compile(
    r"^(?:/tmp/.*|(?:.*/)?(?:repro|replicate|scratch|debug|try_|tmp|temp_)[\w-]*\.\w+)$", re.I
)


@quick_init
@dataclass(frozen=True, slots=True)
class Span:
    """Lines `first` to `last` of a file, counted from 1, both included; `last` is None for its end."""

    path: str
    first: int = 1
    last: int | None = None


@quick_init
@dataclass(frozen=True, slots=True)
class Outcome:
    """A file as it would be after an edit, or as much of it as is known."""

    path: str
    text: str


@quick_init
@dataclass(frozen=True, slots=True)
class Deed:
    """One thing done.

    `effect` is equal where the same comes of it, `intent` where it is about the same; equal effects have
    equal intents. `paths` are files that must be there, `names` what a statement of SQL refers to, `asks`
    what it asks of it.
    `decisive` is False where the intent says little: which program runs, which tables are asked. `setup`
    only prepares. `span` and `outcome` allow a closer look than equality of `effect` (`same_effect`).
    `proven`: the text a file has afterwards is known. `wrote` is the file whose text it makes or changes,
    `after` that text, as far as it is known.
    """

    operation: Operation
    effect: tuple[Any, ...]
    intent: tuple[Any, ...]
    mutating: bool = False
    paths: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    asks: tuple[str, ...] = ()
    decisive: bool = True
    setup: bool = False
    span: Span | None = None
    outcome: Outcome | None = None
    proven: bool = False
    wrote: str = ""
    after: FileText | None = None


def read_deed(path: str, first: int, last: int | None, total: int | None) -> Deed:
    """Reading lines of a file, clipped to its `total` lines where that is known."""
    first = max(1, first)
    if total is not None and last is not None and last >= total:
        last = None
    span = Span(path, first, last)
    return Deed(
        Operation.READ,
        ("read", path, first, last),
        ("read", path),
        paths=(path,),
        decisive="$" not in path,
        span=span,
    )


def list_deed(path: str, flags: str = "") -> Deed:
    """Listing a folder; `flags` are letters that say what of it and in which order."""
    return Deed(Operation.LIST, ("list", path, flags), ("list", path))


def build_search_effect(
    what: str, pattern: str, scope: tuple[str, ...], options: frozenset[str], *then: Any
) -> Deed:
    """Searching names (`what` = name) or texts (`text`) under `scope`; `then` is what its hits go through.

    The intent is the words of the pattern, and what changes the answer itself: tests on names found, and
    the programs the hits go through.
    """
    told = tuple(sorted(options))
    words = _WORD.findall(pattern.lower())
    tests = told if what == "name" else ()
    intent = ("search", " ".join(words) or pattern, tests, tuple(argv[:1] for argv in then))
    return Deed(Operation.SEARCH, ("search", what, pattern, scope, told, *then), intent)


def is_scratch(path: str) -> bool:
    """True for a file that is made to try something."""
    return _SCRATCH.match(path) is not None


def create_intent(path: str) -> tuple[str, str]:
    """What making a file is about: its name, whatever the folder; scratch files are all one."""
    return ("create", "(scratch)" if is_scratch(path) else posixpath.basename(path))
