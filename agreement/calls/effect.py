"""Describe the effects of a call, in the terms that actions are compared by."""

import posixpath
import re
from dataclasses import dataclass
from typing import Any

from tracemill.agreement.files.file_text import FileText
from tracemill.harnesses.core.vocabulary import Operation

_WORD = re.compile(r"[^\W_]+")
_OF_COMMANDS = ("run", "line", "raw", "outside")
_SCRATCH = re.compile(
    r"^(?:/tmp/.*|(?:.*/)?(?:repro|replicate|scratch|debug|try_|tmp|temp_)[\w-]*\.\w+)$", re.I
)


@dataclass(frozen=True, slots=True)
class ActionEffect:
    """One effect of a call; a command line may have several.

    `effect` is equal where the result is the same, `intent` if the target is the same; equal effects have
    equal intents. `names` is what an SQL statement refers to, `asks` what it asks of them. `decisive` is
    False if the intent says little, such as which program runs. `setup` marks mere preparation. `proven`:
    the text of the file afterwards is known. `wrote` is the file that is written, `after` its text as far as
    it is known.
    """

    operation: Operation
    effect: tuple[Any, ...]
    intent: tuple[Any, ...]
    mutating: bool = False
    names: frozenset[str] = frozenset()
    asks: tuple[str, ...] = ()
    decisive: bool = True
    setup: bool = False
    proven: bool = False
    wrote: str = ""
    after: FileText | None = None

    @property
    def edited_file(self) -> str:
        """Return the only file that an editing tool reads and writes, "" for other calls and moves."""
        return "" if self.effect[0] in _OF_COMMANDS or "moved" in self.intent else self.wrote


def list_effect(path: str, flags: str = "") -> ActionEffect:
    """Return the effect of listing a folder; `flags` are letters for what is listed and how."""
    return ActionEffect(Operation.LIST, ("list", path, flags), ("list", path))


def build_search_effect(
    what: str, pattern: str, scope: tuple[str, ...], options: frozenset[str], *then: Any
) -> ActionEffect:
    """Return the effect of searching names (`what` is `name`) or texts (`text`) under `scope`.

    `then` are the commands that the hits are piped through. The intent is the words of the pattern with what
    changes the answer itself: tests on names, and those programs.
    """
    sorted_options = tuple(sorted(options))
    words = _WORD.findall(pattern.lower())
    tests = sorted_options if what == "name" else ()
    intent = ("search", " ".join(words) or pattern, tests, tuple(argv[:1] for argv in then))
    return ActionEffect(Operation.SEARCH, ("search", what, pattern, scope, sorted_options, *then), intent)


def is_scratch(path: str) -> bool:
    """Return whether a file is made only to try something, judged by its name."""
    return _SCRATCH.match(path) is not None


def create_intent(path: str) -> tuple[str, str]:
    """Return the intent of creating a file: its name in any folder. All scratch files share one intent."""
    return ("create", "(scratch)" if is_scratch(path) else posixpath.basename(path))
