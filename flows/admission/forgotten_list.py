"""Remember traces, projects and texts that must not come back, as keyed hashes alone.

`forgotten.json` in the workspace; without `redaction.key` its entries say nothing. Removing an entry
(or the file) lets the sessions in again.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.data_cards.model.versions import next_version, parse_version_key, versions_in_folder
from tracemill.flows.admission.glob_patterns import glob_project_names
from tracemill.flows.admission.text_search import fold_searched_text
from tracemill.flows.admission.trace_filter import FORGOTTEN, FORGOTTEN_FILE
from tracemill.flows.admission.trace_inventory import mask_home_folder
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.publish_gate.decoded_texts import StoredText, TextLocation, open_decoded_text
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

_START = 4  # first characters of a text, by which the places to look at are found


class _Value(NamedTuple):
    """A text in hashed form: its case-folded length, hashes of its first four characters and of all."""

    length: int
    start: str
    whole: str


@dataclass(frozen=True, slots=True)
class ForgottenList:
    """The list of forgotten traces, projects and texts of a workspace.

    `versions` are removed releases by name, whose numbers are not used again.
    """

    key: bytes
    traces: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    versions: tuple[tuple[str, str], ...] = ()
    values: tuple[_Value, ...] = ()
    _starts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, work: Workspace) -> "ForgottenList":
        """Read the list of a workspace.

        Raises WorkspaceError if the file is damaged: with a damaged list forgotten traces would be ingested
        again.
        """
        key, path = workspace_key(work.root / "redaction.key"), work.root / FORGOTTEN_FILE
        if not path.exists():
            return cls(key)
        value: Any = read_json_file(path)
        try:
            versions = tuple(sorted((str(n), str(v)) for n, v in value["versions"]))
            values = tuple(sorted(_Value(int(n), str(s), str(w)) for n, s, w in value["values"]))
            return cls(key, frozenset(value["traces"]), frozenset(value["projects"]), versions, values)
        except (KeyError, TypeError, ValueError):
            raise WorkspaceError(f"{path} is damaged", "a file written by tracemill") from None

    def reason(self, trace: Trace) -> str | None:
        """Return `forgotten` for a trace that is on the list, None for any other.

        It is on the list by itself, by its session or project, or by a text in it.
        """
        ids = [trace.trace_id, *([trace.parent_trace_id] if trace.parent_trace_id else [])]
        if any(self._hash(trace_id) in self.traces for trace_id in ids):
            return FORGOTTEN
        if self.projects and any(self._project(name) in self.projects for name in _names(trace)):
            return FORGOTTEN
        return FORGOTTEN if self.values and any(self.holds(text) for text in _texts(trace)) else None

    def holds(self, text: str) -> bool:
        """Return whether a text contains a text of the list, also after its JSON strings are decoded."""
        return any(
            self._within(fold_searched_text(leaf.text))
            for leaf in open_decoded_text(StoredText(text, "", TextLocation(""), None))
        )

    def _within(self, text: str) -> bool:
        for start in {text[at : at + _START] for at in range(len(text) - _START + 1)}:
            if start not in self._starts:
                self._starts[start] = self._hash("start", start)
            for value in self.values:
                if value.start == self._starts[start] and self._follows(text, start, value):
                    return True
        return False

    def _follows(self, text: str, start: str, value: _Value) -> bool:
        at = text.find(start)
        while at >= 0:
            if self._hash("value", text[at : at + value.length]) == value.whole:
                return True
            at = text.find(start, at + 1)
        return False

    def adding(
        self,
        traces: Iterable[str] = (),
        projects: Iterable[str] = (),
        versions: Iterable[tuple[str, str]] = (),
        values: Iterable[str] = (),
    ) -> "ForgottenList":
        """Return the list with more entries."""
        return replace(
            self,
            traces=self.traces | {self._hash(trace_id) for trace_id in traces},
            projects=self.projects | {self._project(name) for name in projects},
            versions=tuple(sorted({*self.versions, *versions})),
            values=tuple(
                sorted({*self.values, *(self._value(fold_searched_text(value)) for value in values)})
            ),
        )

    def write(self, work: Workspace) -> None:
        """Replace the list of a workspace by this one."""
        value = {
            "schema": 2,
            "traces": sorted(self.traces),
            "projects": sorted(self.projects),
            "versions": self.versions,
            "values": [list(value) for value in self.values],
        }
        write_json(work.root / FORGOTTEN_FILE, value, private=True)

    def version_for(self, releases_dir: Path, name: str, major: int = 1) -> str | None:
        """Return a higher version number for the next release if the latest was removed, else None.

        A version number is never used for two contents.
        """
        removed = [version for release, version in self.versions if release == name]
        latest = max(removed, key=parse_version_key, default=None)
        there = versions_in_folder(releases_dir / name)
        if latest is None or (there and parse_version_key(there[-1]) > parse_version_key(latest)):
            return None
        return next_version(latest, datetime.now(UTC), major)

    def alias(self, trace_id: str) -> str:
        """Return the alias that replaces the trace id in the ledger's bookings."""
        return f"forgotten-{self._hash(trace_id)[:20]}"

    def _value(self, text: str) -> _Value:
        return _Value(len(text), self._hash("start", text[:_START]), self._hash("value", text))

    def _project(self, name: str) -> str:
        return self._hash("project", mask_home_folder(name).casefold())

    def _hash(self, *parts: str) -> str:
        text = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self.key[:64], digest_size=16).hexdigest()


def _names(trace: Trace) -> set[str]:
    """Return name and folders of the project, or its repository if it has no name.

    Single parts of a path are left out, since many projects share them.
    """
    folders = {name for name in glob_project_names(trace) if "/" in name}
    name = trace.project or trace.repository
    return folders | ({name} if name else set())


def _texts(trace: Trace) -> Iterator[str]:
    """Yield every text of a trace, each once."""
    said = {trace.project, trace.repository, trace.instance_id, trace.origin}
    for context in trace.contexts:
        said |= {step.cwd for step in context.steps}
        said |= {text for tool in context.tools for text in (tool.name, tool.description)}
        for message in context.messages:
            said |= {message.content, message.reasoning, message.name}
            said |= {text for call in message.tool_calls for text in (call.name, call.arguments)}
    yield from sorted(text for text in said if text)
