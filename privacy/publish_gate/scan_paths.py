"""Scan files twice: with our own strictest rules, and with kingfisher where it is installed.

Every string is decoded and judged once however often it recurs: a release repeats the context of a session
in every row.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import Span
from tracemill.privacy.core.secret_names import is_secret_name, secret_name_kind
from tracemill.privacy.core.user_lists import UserList
from tracemill.privacy.personal.known_identity import KnownValues
from tracemill.privacy.publish_gate.clean_texts import CleanTexts
from tracemill.privacy.publish_gate.decoded_texts import (
    DecodedText,
    StoredText,
    TextLocation,
    open_decoded_text,
)
from tracemill.privacy.publish_gate.documents import SkippedFiles
from tracemill.privacy.publish_gate.file_texts import read_file_texts, walk_text_files
from tracemill.privacy.publish_gate.findings import Finding, FoundValue, finding_value_spans, is_same
from tracemill.privacy.publish_gate.kingfisher import (
    KingfisherMatch,
    find_kingfisher,
    kingfisher_version,
    require_kingfisher,
    run_kingfisher,
)
from tracemill.privacy.publish_gate.private_folder import private_folder
from tracemill.privacy.publish_gate.scan_texts import WrittenText, WrittenTexts
from tracemill.privacy.publish_gate.strict_personal import (
    find_named,
    find_personal_strictly,
    is_personal_label,
)
from tracemill.privacy.publish_gate.strict_rules import find_strictly
from tracemill.privacy.publish_gate.strict_unannounced import find_in_decoded, find_unannounced
from tracemill.privacy.redaction.detectors import EVERYTHING, Detectors
from tracemill.privacy.redaction.known_secrets import KnownSecrets
from tracemill.privacy.redaction.redact_text import resolve_redacted_spans

_SAY_EVERY_S, _SAVE_EVERY_S = 1.0, 10.0

OWN, SECOND = "own rules", "kingfisher"


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The result of a scan.

    `second` is kingfisher's version, None where it did not run. `texts` and `characters` count what was
    judged, each text once. `passed_over` counts what holds no text. `not_read` names, by reason, the files
    that may hold something and were not read to their end.
    """

    findings: tuple[Finding, ...]
    second: str | None
    files: int
    texts: int
    characters: int
    passed_over: dict[str, int]
    not_read: dict[str, list[str]]
    seconds: float
    values: dict[str, str] = field(default_factory=dict, repr=False)
    """The values of the findings by fingerprint; never log or store them."""


class ScanProgress(NamedTuple):
    """Progress of our own rules: distinct texts, their characters, and the file that is read of all files."""

    texts: int
    characters: int
    file: int
    files: int


@dataclass(slots=True)
class _Hit:
    span: Span
    value: str = field(repr=False)
    opinions: tuple[str, ...]


@dataclass(slots=True)
class _Marked:
    """A text with findings, and its place."""

    leaf: DecodedText
    place: TextLocation
    hits: list[_Hit]
    raws: list[bytes]
    """Digests of the stored strings that hold it."""


class Scanner:
    """A judge of files.

    `known` are the exact values to search for, `key` is the key of the fingerprints. What the user allows in
    redaction is judged too. With `secrets`, those of a workspace, a release is judged: nothing in it may be a
    secret of any session, and the strict rules apply.

    `clean` is a file that keeps in which texts neither scanner found anything: they are not read again.

    `environ` says where kingfisher is (`TRACEMILL_KINGFISHER`, `PATH`) and where it may cache its compiled
    rules. Raises ConfigError where it names a missing kingfisher.
    """

    def __init__(
        self,
        known: KnownValues,
        key: bytes,
        environ: Mapping[str, str],
        secrets: KnownSecrets | None = None,
        clean: Path | None = None,
    ) -> None:
        self._known = replace(known, allow=UserList())  # what may be published is accepted finding by finding
        self._key, self._environ, self._secrets, self._clean = key, environ, secrets, clean
        self._binary = find_kingfisher(environ)

    def require_second(self, required: bool) -> None:
        """Raise PrivacyError where kingfisher is `required` and absent or does not work."""
        require_kingfisher(self._environ, required)

    def scan(self, path: Path, on_progress: Callable[[ScanProgress], None] | None = None) -> ScanResult:
        """Judge every text of a file or folder with both scanners.

        `on_progress` is called about once a second.

        Raises SourceError where the path does not exist or is no file, folder or pipe, PrivacyError where
        kingfisher fails.
        """
        began = time.monotonic()
        second = kingfisher_version(self._binary) if self._binary else None
        with private_folder() as private:
            written = WrittenTexts(private / "texts") if self._binary else None
            clean = (
                CleanTexts(self._clean, self._key, self._known, second)
                if self._clean and self._secrets
                else None
            )
            work = _Work(Detectors(self._known), written, self._secrets, clean)
            with closing(written) if written is not None else nullcontext():
                _take_files(work, path, clean, on_progress)
            if self._binary and written is not None and written.texts:
                work.add_second(written, run_kingfisher(self._binary, written.folder, self._environ))
            if clean is not None:
                work.remember(clean)
        values: dict[str, str] = {}
        return ScanResult(
            findings=tuple(work.findings(self._key, values)),
            second=second,
            files=work.files,
            texts=len(work.times),
            characters=work.characters,
            passed_over=dict(work.skipped.passed_over),
            not_read=work.not_read(),
            seconds=time.monotonic() - began,
            values=values,
        )


def _take_files(
    work: "_Work",
    path: Path,
    clean: CleanTexts | None,
    on_progress: Callable[[ScanProgress], None] | None,
) -> None:
    """Judge every text of a file or folder by our own rules."""
    base = path if path.is_dir() else path.parent
    files = list(walk_text_files(path, work.skipped))
    said = saved = time.monotonic()
    for file in files:
        work.files += 1
        for text in read_file_texts(file, str(file.relative_to(base)), work.skipped):
            work.take(text)
            now = time.monotonic()
            if on_progress is not None and now - said >= _SAY_EVERY_S:
                said = now
                on_progress(ScanProgress(len(work.times), work.characters, work.files, len(files)))
            if clean is not None and now - saved >= _SAVE_EVERY_S:
                saved = now
                clean.save_by_rules(work.clean_marks())


class _Work:
    """The state of one scan."""

    def __init__(
        self,
        rules: Detectors,
        written: WrittenTexts | None,
        secrets: KnownSecrets | None,
        clean: CleanTexts | None = None,
    ) -> None:
        self._secrets, self._clean = secrets, clean
        self.files = self.characters = 0
        self.skipped = SkippedFiles()
        self.times: Counter[bytes] = Counter()
        self._rules, self._written = rules, written
        self._judged: dict[bytes, bytes] = {}
        self._not_clean: set[bytes] = set()
        self._marked: dict[bytes, _Marked] = {}

    def take(self, text: StoredText) -> None:
        """Judge a stored string, if it is new, by our own rules, and write it for kingfisher."""
        raw = _digest(text.text, text.name)
        self.times[raw] += 1
        if self.times[raw] > 1:
            return
        leaves = list(open_decoded_text(text))
        clean = [self._clean is not None and self._clean.holds(_clean_mark(leaf)) for leaf in leaves]
        passed = [each or self._is_clean_by_rules(leaf) for leaf, each in zip(leaves, clean, strict=True)]
        declared = self._declared(leaves, passed)
        for leaf, was_clean, was_passed in zip(leaves, clean, passed, strict=True):
            mark = _digest(leaf.text, leaf.name)
            if mark in self._marked:
                self._marked[mark].raws.append(raw)
                continue
            spans_declared = declared.get(leaf.text, [])
            if mark in self._judged and not spans_declared:
                continue
            if mark not in self._judged:
                self._judged[mark] = _clean_mark(leaf)
                self.characters += len(leaf.text)
                if self._written is not None and not was_clean:
                    self._written.add(leaf, text.place, raw)
            if spans := self._spans(leaf, was_passed, spans_declared):
                hits = [_Hit(span, leaf.text[span.start : span.end], (OWN,)) for span in spans]
                self._marked[mark] = _Marked(leaf, text.place, hits, [raw])

    def _is_clean_by_rules(self, leaf: DecodedText) -> bool:
        return self._clean is not None and self._clean.holds_by_rules(_clean_mark(leaf))

    def _declared(self, leaves: list[DecodedText], clean: list[bool]) -> dict[str, list[Span]]:
        """Return what names in JSON declare private, by the text that holds it.

        The text is a string by itself, or for a number the JSON. JSON that was `clean` declares nothing.
        """
        found: dict[str, list[Span]] = {}
        texts = {leaf.text for leaf in leaves}
        for leaf, was_clean in zip(leaves, clean, strict=True):
            if was_clean or not leaf.opened:
                continue
            for value, kind in self._rules.declared(leaf.text, EVERYTHING).items():
                self._not_clean.add(_digest(leaf.text, leaf.name))
                if value in texts:
                    found.setdefault(value, []).append(Span(0, len(value), kind))
                else:
                    found.setdefault(leaf.text, []).extend(finding_value_spans(leaf.text, kind, value)[:1])
        return found

    def _spans(self, leaf: DecodedText, was_clean: bool, declared: list[Span]) -> list[Span]:
        """Return the findings in a text, with those `declared` of it.

        An opened JSON text has only the declared ones, since its parts are judged too. Where it `was_clean`
        the rules are not asked.
        """
        if leaf.opened:
            return resolve_redacted_spans(leaf.text, declared)
        spans = [] if was_clean else self._by_rules(leaf)
        if declared:
            spans = resolve_redacted_spans(leaf.text, [*spans, *declared])
        if self._secrets is None:
            return spans
        known = self._secrets.find([leaf.text]).items()
        found = [span for value, kind in known for span in finding_value_spans(leaf.text, kind, value)]
        return resolve_redacted_spans(leaf.text, [*spans, *found])

    def _by_rules(self, leaf: DecodedText) -> list[Span]:
        """Return what the rules find; with a workspace's secrets the strict ones too."""
        spans = scan_own_spans(self._rules, leaf.text, leaf.name)
        if self._secrets is not None:
            spans += find_in_release(self._rules, leaf.text, leaf.name)
        return spans

    def remember(self, clean: CleanTexts) -> None:
        """Store the texts in which neither scanner found anything; call it once both have ended."""
        for each in self.clean_marks():
            clean.add(each)
        clean.save()

    def clean_marks(self) -> Iterator[bytes]:
        """Yield the marks of the texts without a finding so far."""
        for mark, each in self._judged.items():
            if mark not in self._marked and mark not in self._not_clean:
                yield each

    def add_second(self, written: WrittenTexts, matches: list[KingfisherMatch]) -> None:
        """Add kingfisher's findings, joined to ours where they are the same; opened texts come last."""
        found = [(written.read(match), match) for match in matches]
        for text, match in sorted(found, key=lambda pair: (pair[0].leaf.opened, pair[1].line)):
            self._add_match(text, match)

    def _add_match(self, text: WrittenText, match: KingfisherMatch) -> None:
        mark = _digest(text.leaf.text, text.leaf.name)
        self._not_clean.add(mark)
        there = self._marked.get(mark)
        # The parts of an opened text hold its values too, and may have been judged elsewhere.
        near = self._marked.values() if text.leaf.opened else [there] if there else []
        for hit in (hit for each in near for hit in each.hits):
            if is_same(hit.value, match.value):
                hit.opinions = (*hit.opinions, SECOND) if SECOND not in hit.opinions else hit.opinions
                return
        spans = finding_value_spans(text.leaf.text, match.rule, match.value)
        if not spans and match.value not in text.leaf.text and not find_keyed_placeholders(match.value):
            spans = [Span(0, len(text.leaf.text), match.rule)]  # inside encoded data
        hits = [_Hit(span, match.value, (SECOND,)) for span in spans[:1]]
        if hits:
            self._marked.setdefault(mark, _Marked(text.leaf, text.place, [], [text.raw])).hits += hits

    def findings(self, key: bytes, values: dict[str, str]) -> Iterator[Finding]:
        """Yield all findings in the order of the files; a value counts once in a text.

        `values` gets the value of each, by fingerprint.
        """
        for marked in self._marked.values():
            spans = [hit.span for hit in marked.hits]
            times = sum(self.times[raw] for raw in marked.raws)
            by_value = {(hit.span.kind, hit.value): hit for hit in reversed(marked.hits)}
            for hit in reversed(by_value.values()):
                found = FoundValue(marked.leaf, marked.place, hit.span, hit.value, hit.opinions)
                told = found.told(key, spans, times, self._shown)
                text = marked.leaf.text
                values[told.fingerprint] = (
                    hit.value if hit.value in text else text[hit.span.start : hit.span.end]
                )
                yield told

    def not_read(self) -> dict[str, list[str]]:
        """Return the files that were not read, by reason."""
        return {why: [self._shown(file) for file in files] for why, files in self.skipped.not_read.items()}

    def _shown(self, name: str) -> str:
        """Return the name of a file or column with its findings masked."""
        marked = self._marked.get(_digest(name, ""))
        for start, end, kind in sorted((hit.span for hit in marked.hits), reverse=True) if marked else ():
            name = f"{name[:start]}[{kind}]{name[min(end, len(name)) :]}"
        return "".join(each if each.isprintable() else "?" for each in name)


def scan_own_spans(rules: Detectors, text: str, name: str) -> list[Span]:
    """Return what our own rules find in a decoded text named `name`, except placeholders."""
    found = find_named(text, name, lambda whole: rules.spans(whole, rules.needs(whole)))
    spans = resolve_redacted_spans(text, found)
    whole = any(span.end - span.start == len(text) for span in spans)
    if name and not whole and not find_keyed_placeholders(text):
        kind = secret_name_kind(name.lstrip("-"), text, True)
        if kind:
            return [Span(0, len(text), kind)]
    return spans


def find_in_release(rules: Detectors, text: str, name: str) -> list[Span]:
    """Return what the strict rules find in a decoded text, and in what is encoded inside it."""

    def strictly(plain: str) -> list[Span]:
        return [*find_strictly(plain), *find_personal_strictly(plain), *find_unannounced(plain)]

    return [
        *find_strictly(text),
        *find_named(text, name, find_personal_strictly),
        *find_unannounced(text),
        *find_in_decoded(text, lambda plain: [*scan_own_spans(rules, plain, ""), *strictly(plain)]),
    ]


def _clean_mark(leaf: DecodedText) -> bytes:
    """Return what a clean text is remembered by: opened JSON is judged otherwise than a plain text."""
    return _digest(leaf.text, leaf.name) + (b"opened" if leaf.opened else b"")


def _digest(text: str, name: str) -> bytes:
    """Return the same digest for the same text, unless a name makes one secret or personal."""
    called = name if name and (is_secret_name(name) or is_personal_label(name)) else ""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16, person=called.encode("utf-8", "replace")[:16]).digest()
