"""Whether a session is made of a benchmark for evaluation, looked at once a session.

By its repository and instance, by ids and marks in any text of it (agents print them), and, where local files
of benchmarks are given, by their base commits and by runs of eight words of their problem statements
(Tulu 3, arXiv 2411.15124, section 3.2).
"""

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tracemill.normalize.minhash import minhash_word_hashes, run_hashes, words_to_count
from tracemill.records.errors import NormalizeError
from tracemill.records.trace import Trace

LISTS = Path(__file__).with_name("benchmarks.toml")
RUN = 8
HALF = 0.5
"""The share of a statement's runs of eight words from which a session holds the statement."""
_LEAST_RUNS = 8
_FILTER_BITS = 22
_SHIFT = np.uint64(64 - _FILTER_BITS)
_KNOWN_TEXTS = 100_000
_COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_HEX = bytes(ord("x") if chr(code) in "0123456789abcdef" else ord(" ") for code in range(256))
_OWNER, _NUMBER = r"(?<![\w-])([A-Za-z0-9-]{1,39})", r"(\d{1,6})(?![A-Za-z0-9-])"
_OWNER_BEFORE = re.compile(rf"{_OWNER}\Z")
_UNDERSCORED = re.compile(rf"__([A-Za-z0-9_.-]{{1,60}}?)-{_NUMBER}")
_PULL = re.compile(rf"{_OWNER}/([A-Za-z0-9_.-]{{1,60}}):pr-{_NUMBER}")
_REPOSITORY_URL = re.compile(r"(?:^|github\.com[/:])([\w.-]+/[\w.-]+?)(?:\.git)?/?$", re.IGNORECASE)
_COLUMNS = ("instance_id", "repo", "base_commit", "problem_statement")


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """What benchmarks are made of. `repositories` and `instances` (lower case), `commits` and `marks` name
    theirs; `statements` are what their tasks say."""

    repositories: Mapping[str, str]
    marks: Mapping[str, str]
    instances: Mapping[str, str] = field(default_factory=dict)
    commits: Mapping[str, str] = field(default_factory=dict)
    statements: "Statements | None" = None

    def overlap(self, trace: Trace) -> str:
        """Why a session is made of a benchmark, for people; empty where it is not."""
        return self._by_name(trace) or self._by_text(list(_texts(trace)))

    def _by_name(self, trace: Trace) -> str:
        found = _REPOSITORY_URL.search((trace.repository or "").lower())
        benchmark = self.repositories.get(found[1] if found else "")
        if benchmark:
            return f"repository of {benchmark}"
        instance = (trace.instance_id or "").lower()
        benchmark = self.instances.get(instance) or next(self._instances_in(instance), "")
        return f"instance of {benchmark}" if benchmark else ""

    def _by_text(self, texts: Sequence[str]) -> str:
        for text in texts:
            for mark, benchmark in self.marks.items():
                if mark in text:
                    return f"mark of {benchmark}"
            if benchmark := next(self._instances_in(text.lower()), ""):
                return f"instance id of {benchmark} in its text"
            if self.commits:
                for commit in _commits_in(text):
                    if commit in self.commits:
                        return f"base commit of {self.commits[commit]} in its text"
        return self.statements.held_by(texts) if self.statements else ""

    def _instances_in(self, text: str) -> Iterator[str]:
        for name in _names_in(text):
            benchmark = self.repositories.get(name)
            if benchmark is not None:
                yield benchmark


def _names_in(text: str) -> Iterator[str]:
    """Repositories of ids of instances: `owner__repo-123` and `owner/repo:pr-123`. The first kind is looked
    for by its middle, which is rarer than what may be the name of an owner."""
    found = _UNDERSCORED.search(text)
    while found is not None:
        owner = _OWNER_BEFORE.search(text, max(0, found.start() - 41), found.start())
        if owner is not None:
            yield f"{owner[1]}/{found[1]}"
        found = _UNDERSCORED.search(text, found.start() + 1 if owner is None else found.end())
    if ":pr-" in text:
        yield from (f"{pull[1]}/{pull[2]}" for pull in _PULL.finditer(text))


def _commits_in(text: str) -> list[str]:
    """Runs of exactly 40 hex digits."""
    if b"x" * 40 not in text.encode("utf-8", "surrogatepass").translate(_HEX):
        return []
    return _COMMIT.findall(text)


class Statements:
    """What tasks of benchmarks say, as (benchmark, statement). A statement of a few words is left out: it may
    be anybody's."""

    def __init__(self, said: Iterable[tuple[str, str]]) -> None:
        self._sizes: list[tuple[str, int]] = []
        self._runs: dict[int, list[int]] = {}
        for name, statement in said:
            runs = set(hash_word_runs(statement).tolist())
            if len(runs) >= _LEAST_RUNS:
                for run in runs:
                    self._runs.setdefault(run, []).append(len(self._sizes))
                self._sizes.append((name, len(runs)))
        self._filter = np.zeros(1 << _FILTER_BITS, np.bool_)
        self._filter[np.fromiter(self._runs, np.uint64, len(self._runs)) >> _SHIFT] = True
        self._known: dict[bytes, frozenset[int]] = {}

    def held_by(self, texts: Iterable[str]) -> str:
        """Why a session of these texts holds a statement, for people; empty where it holds none."""
        met = frozenset[int]().union(*map(self._met, texts))
        held = Counter(statement for run in met for statement in self._runs[run])
        for statement, count in held.most_common():
            name, size = self._sizes[statement]
            if count >= HALF * size:
                return f"problem statement of {name}"
        return ""

    def _met(self, text: str) -> frozenset[int]:
        """The runs of statements that are in a text; sessions share texts, so the last are known again."""
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key not in self._known:
            if len(self._known) >= _KNOWN_TEXTS:
                self._known.clear()
            runs = hash_word_runs(text)
            maybe = runs[self._filter[runs >> _SHIFT]].tolist()
            self._known[key] = frozenset(run for run in maybe if run in self._runs)
        return self._known[key]


def hash_word_runs(text: str) -> npt.NDArray[np.uint64]:
    """Hashes of a text's runs of eight words."""
    return run_hashes(minhash_word_hashes(words_to_count(text)), RUN)


def _texts(trace: Trace) -> Iterator[str]:
    """Every text of a session once: what was said, called and came back."""
    seen: set[str] = set()
    for context in trace.contexts:
        for message in context.messages:
            for text in (message.content, *(call.arguments for call in message.tool_calls)):
                if text and text not in seen:
                    seen.add(text)
                    yield text


def load_benchmarks(files: Sequence[Path] = ()) -> Benchmarks:
    """The lists that ship, and what local files of benchmarks add: JSONL or Parquet with `instance_id`, and
    as far as known `repo`, `base_commit`, `problem_statement`.

    Raises NormalizeError for a file that cannot be read or has no instances.
    """
    listed = tomllib.loads(LISTS.read_text(encoding="utf-8"))["benchmark"]
    repositories = {name: entry["name"] for entry in reversed(listed) for name in entry["repositories"]}
    marks = {mark: entry["name"] for entry in listed for mark in entry.get("marks", ())}
    rows = [(file.stem, row) for file in files for row in _rows(file)]
    instances = {str(row["instance_id"]).lower(): name for name, row in rows}
    commits = {row["base_commit"]: name for name, row in rows if row.get("base_commit")}
    repositories |= {row["repo"].lower(): name for name, row in rows if row.get("repo")} | repositories
    statements = Statements((name, row.get("problem_statement") or "") for name, row in rows)
    return Benchmarks(repositories, marks, instances, commits, statements if rows else None)


def _rows(file: Path) -> Iterable[dict[str, Any]]:
    wanted = "JSONL or Parquet with a column `instance_id`"
    try:
        if file.suffix == ".parquet":
            import pyarrow.parquet as pq

            there = set(pq.read_schema(file).names)
            rows = pq.read_table(file, columns=[name for name in _COLUMNS if name in there]).to_pylist()
        else:
            lines = file.read_text(encoding="utf-8").splitlines()
            rows = [{name: row.get(name) for name in _COLUMNS} for line in lines if (row := json.loads(line))]
    except (OSError, ValueError, AttributeError) as error:
        raise NormalizeError(
            f"benchmark {file} cannot be read ({type(error).__name__})", wanted, "see normalize.benchmarks"
        ) from error
    if not rows or not all(isinstance(row.get("instance_id"), str) for row in rows):
        raise NormalizeError(f"benchmark {file} has no instances", wanted, "see normalize.benchmarks")
    return rows
