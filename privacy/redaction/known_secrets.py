"""Keep keyed hashes of the secrets found in a workspace, to find them in other texts.

Such texts are subagents' sessions, teachers' replies and cards. The file holds no value: a line is a hash
under the workspace's key, the type and the number of characters.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.core.placeholder_keys import digest_with_placeholder_key
from tracemill.privacy.core.spellings import list_echo_spellings
from tracemill.records.storage.atomic_files import append_private_line
from tracemill.records.trace import Trace

KNOWN_SECRETS = "known_secrets.keyed"
"""The name of the file in a workspace."""
_PURPOSE = "secret of this workspace"
_WORD = re.compile(r"[^\s\"'`\\<>]{8,512}")
_JOINTS = re.compile(r"[=:,;(){}\[\]|&@/]")
_TRAILING = ".,;:!?)]}"
_PLAIN = re.compile(r"[a-z_./-]+|[A-Z_./-]+|\d+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*")  # words, names, paths, numbers


class KnownSecrets:
    """The secrets of a workspace, under its key; the file is read again whenever it grew."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key = path, key
        self._size = 0
        self._kinds: dict[str, str] = {}
        self._sizes: set[int] = set()

    def add(self, values: Mapping[str, str]) -> None:
        """Store the secrets that are distinctive, with their types.

        Raises WorkspaceError where the file cannot be written.
        """
        self._read()
        lines = [line for value, kind in values.items() for line in self._lines(value, kind)]
        if lines:
            append_private_line(self._path, "".join(lines))

    def find(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the words of the texts that are known secrets, each with its type."""
        self._read()
        if not self._kinds:
            return {}
        found: dict[str, str] = {}
        for word in {word for text in texts for word in self._candidates(text)}:
            if kind := self._kinds.get(self._digest(word)):
                found[word] = kind
        return found

    def _lines(self, value: str, kind: str) -> Iterator[str]:
        if judge_distinctiveness(value, kind) is not Distinctiveness.ANYWHERE:
            return
        for spelling in sorted(list_echo_spellings(value)):
            digest = self._digest(spelling)
            if digest not in self._kinds and _WORD.fullmatch(spelling):
                self._kinds[digest] = kind
                yield f"{digest} {kind} {len(spelling)}\n"

    def _candidates(self, text: str) -> Iterator[str]:
        for match in _WORD.finditer(text):
            for part in (match[0], *_JOINTS.split(match[0])):
                for each in {part, part.rstrip(_TRAILING)}:
                    if len(each) in self._sizes and not _PLAIN.fullmatch(each):
                        yield each

    def _digest(self, value: str) -> str:
        return digest_with_placeholder_key(self._key, _PURPOSE, value)

    def _read(self) -> None:
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return
        if size == self._size:
            return
        for line in self._path.read_text("ascii").splitlines():
            digest, kind, length = line.split(" ")
            self._kinds[digest] = kind
            self._sizes.add(int(length))
        self._size = size


def trace_texts(trace: Trace) -> Iterator[str]:
    """Yield every text of the messages of a trace; a shared message counts once."""
    seen: set[int] = set()
    for context in trace.contexts:
        for message in context.messages:
            if id(message) not in seen:
                seen.add(id(message))
                yield from message.texts()
