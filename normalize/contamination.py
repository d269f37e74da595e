"""Whether a session is made of a benchmark for evaluation, looked at once a session.

By its repository and instance, by ids and marks in any text of it (agents print them), and, where local files
of benchmarks are given, by their base commits and by runs of eight words of their problem statements
(Tulu 3, arXiv 2411.15124, section 3.2).
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from records.errors import NormalizeError
from records.state import Trace

LISTS = Path(__file__).with_name("benchmarks.toml")
RUN = 8
HALF = 0.5
"""The share of a statement's runs of eight words from which a session holds the statement."""
_LEAST_RUNS = 8
_WORD = re.compile(r"\w+")
_COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_OWNER, _NUMBER = r"(?<![\w-])([A-Za-z0-9-]{1,39})", r"(\d{1,6})(?![A-Za-z0-9-])"
_INSTANCES = (
    ("__", re.compile(rf"{_OWNER}__([A-Za-z0-9_.-]{{1,60}}?)-{_NUMBER}")),
    (":pr-", re.compile(rf"{_OWNER}/([A-Za-z0-9_.-]{{1,60}}):pr-{_NUMBER}")),
)
_REPOSITORY_URL = re.compile(r"(?:^|github\.com[/:])([\w.-]+/[\w.-]+?)(?:\.git)?/?$", re.IGNORECASE)
_COLUMNS = ("instance_id", "repo", "base_commit", "problem_statement")


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """What benchmarks are made of. `repositories` and `instances` (lower case), `commits` and `marks` name
    theirs; `runs` lists for the hash of a run of words the statements it is in, `sizes` their numbers of
    runs."""

    repositories: Mapping[str, str]
    marks: Mapping[str, str]
    instances: Mapping[str, str] = field(default_factory=dict)
    commits: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    sizes: Sequence[tuple[str, int]] = ()

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
                for commit in _COMMIT.findall(text):
                    if commit in self.commits:
                        return f"base commit of {self.commits[commit]} in its text"
        return self._by_runs(texts) if self.runs else ""

    def _instances_in(self, text: str) -> Iterator[str]:
        for joint, pattern in _INSTANCES:
            for found in pattern.finditer(text) if joint in text else ():
                benchmark = self.repositories.get(f"{found[1]}/{found[2]}")
                if benchmark is not None:
                    yield benchmark

    def _by_runs(self, texts: Sequence[str]) -> str:
        met: set[int] = set()
        for text in texts:
            met.update(run for run in word_runs(text) if run in self.runs)
        held = Counter(statement for run in met for statement in self.runs[run])
        for statement, count in held.most_common():
            name, size = self.sizes[statement]
            if count >= HALF * size:
                return f"problem statement of {name}"
        return ""


def word_runs(text: str) -> set[int]:
    """Hashes of a text's runs of eight words; they differ between processes."""
    words = _WORD.findall(text.lower())
    return {hash(tuple(words[at : at + RUN])) for at in range(len(words) - RUN + 1)}


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
    runs: dict[int, tuple[int, ...]] = {}
    sizes: list[tuple[str, int]] = []
    for name, row in rows:
        found = word_runs(row.get("problem_statement") or "")
        if len(found) >= _LEAST_RUNS:
            for run in found:
                runs[run] = (*runs.get(run, ()), len(sizes))
            sizes.append((name, len(found)))
    return Benchmarks(repositories, marks, instances, commits, runs, sizes)


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
