"""Decontamination: find sessions that were made from a benchmark for evaluation.

A session is matched by its repository and instance, and by instance ids and canary strings in its texts.
Local files of benchmarks add their base commits and 8-grams of their problem statements (Tulu 3, arXiv
2411.15124, section 3.2).
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracemill.normalize.minhash import hash_ngrams, hash_words, split_words
from tracemill.records.errors import NormalizeError
from tracemill.records.trace import Trace

LISTS = Path(__file__).with_name("benchmarks.toml")
NGRAM = 8
MATCH_SHARE = 0.5
"""Share of a statement's n-grams that a session must contain."""
_LEAST_NGRAMS = 8
_COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_OWNER, _NUMBER = r"(?<![\w-])([A-Za-z0-9-]{1,39})", r"(\d{1,6})(?![A-Za-z0-9-])"
_INSTANCE = re.compile(rf"{_OWNER}__([A-Za-z0-9_.-]{{1,60}}?)-{_NUMBER}")
_PULL_REQUEST = re.compile(rf"{_OWNER}/([A-Za-z0-9_.-]{{1,60}}):pr-{_NUMBER}")
_REPOSITORY_URL = re.compile(r"(?:^|github\.com[/:])([\w.-]+/[\w.-]+?)(?:\.git)?/?$", re.IGNORECASE)
_COLUMNS = ("instance_id", "repo", "base_commit", "problem_statement")


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """Benchmarks by their identifying features.

    `repositories`, `instances` (both in lower case), `commits` and `marks` (canary strings) map to the name
    of the benchmark. `statements` index the problem statements.
    """

    repositories: Mapping[str, str]
    marks: Mapping[str, str]
    instances: Mapping[str, str] = field(default_factory=dict)
    commits: Mapping[str, str] = field(default_factory=dict)
    statements: "StatementIndex | None" = None

    def overlap(self, trace: Trace) -> str:
        """Return why a session is made of a benchmark, in words; "" if it is not."""
        return self._match_name(trace) or self._match_texts(_unique_texts(trace))

    def _match_name(self, trace: Trace) -> str:
        match = _REPOSITORY_URL.search((trace.repository or "").lower())
        benchmark = self.repositories.get(match[1] if match else "")
        if benchmark:
            return f"repository of {benchmark}"
        instance = (trace.instance_id or "").lower()
        benchmark = self.instances.get(instance) or self._match_instance(instance)
        return f"instance of {benchmark}" if benchmark else ""

    def _match_texts(self, texts: Iterable[str]) -> str:
        for text in texts:
            for mark, benchmark in self.marks.items():
                if mark in text:
                    return f"mark of {benchmark}"
            if benchmark := self._match_instance(text.lower()):
                return f"instance id of {benchmark} in its text"
            for commit in _COMMIT.findall(text) if self.commits else ():
                if commit in self.commits:
                    return f"base commit of {self.commits[commit]} in its text"
        return self.statements.match(texts) if self.statements else ""

    def _match_instance(self, text: str) -> str:
        """Return the benchmark of the first instance id in a text: `owner__repo-1` or `owner/repo:pr-1`."""
        ids = _INSTANCE.findall(text) if "__" in text else []
        ids += _PULL_REQUEST.findall(text) if ":pr-" in text else []
        names = (f"{owner}/{repository}" for owner, repository, _ in ids)
        return next((self.repositories[name] for name in names if name in self.repositories), "")


class StatementIndex:
    """N-grams of problem statements, given as (benchmark, statement); short statements are left out."""

    def __init__(self, statements: Iterable[tuple[str, str]]) -> None:
        self._sizes: list[tuple[str, int]] = []
        self._statements_of: dict[int, list[int]] = {}
        for name, statement in statements:
            ngrams = set(_ngrams(statement))
            if len(ngrams) >= _LEAST_NGRAMS:
                for ngram in ngrams:
                    self._statements_of.setdefault(ngram, []).append(len(self._sizes))
                self._sizes.append((name, len(ngrams)))

    def match(self, texts: Iterable[str]) -> str:
        """Return the reason why a session of these texts contains a statement; "" if it contains none."""
        matched = {ngram for text in texts for ngram in _ngrams(text) if ngram in self._statements_of}
        counts = Counter(statement for ngram in matched for statement in self._statements_of[ngram])
        for statement, count in counts.most_common():
            name, size = self._sizes[statement]
            if count >= MATCH_SHARE * size:
                return f"problem statement of {name}"
        return ""


def _ngrams(text: str) -> list[int]:
    return hash_ngrams(hash_words(split_words(text)), NGRAM).tolist()


def _unique_texts(trace: Trace) -> list[str]:
    """Return the contents and call arguments of a session, each text once."""
    messages = [message for context in trace.contexts for message in context.messages]
    texts = (text for each in messages for text in (each.content, *(c.arguments for c in each.tool_calls)))
    return list(dict.fromkeys(filter(None, texts)))


def load_benchmarks(files: Sequence[Path] = ()) -> Benchmarks:
    """Load the lists that ship with tracemill, and local files of benchmarks.

    A file is JSONL or Parquet with a column `instance_id`, and optionally `repo`, `base_commit` and
    `problem_statement`. Raises NormalizeError for a file that cannot be read or has no instances.
    """
    listed = tomllib.loads(LISTS.read_text(encoding="utf-8"))["benchmark"]
    repositories = {name: entry["name"] for entry in reversed(listed) for name in entry["repositories"]}
    marks = {mark: entry["name"] for entry in listed for mark in entry.get("marks", ())}
    rows = [(file.stem, row) for file in files for row in _rows(file)]
    instances = {str(row["instance_id"]).lower(): name for name, row in rows}
    commits = {row["base_commit"]: name for name, row in rows if row.get("base_commit")}
    repositories |= {row["repo"].lower(): name for name, row in rows if row.get("repo")} | repositories
    statements = StatementIndex((name, row.get("problem_statement") or "") for name, row in rows)
    return Benchmarks(repositories, marks, instances, commits, statements if rows else None)


def _rows(file: Path) -> Iterable[dict[str, Any]]:
    expected = "JSONL or Parquet with a column `instance_id`"
    try:
        if file.suffix == ".parquet":
            import pyarrow.parquet as pq

            columns = [name for name in _COLUMNS if name in pq.read_schema(file).names]
            rows = pq.read_table(file, columns=columns).to_pylist()
        else:
            lines = file.read_text(encoding="utf-8").splitlines()
            rows = [{name: row.get(name) for name in _COLUMNS} for line in lines if (row := json.loads(line))]
    except (OSError, ValueError, AttributeError) as error:
        raise NormalizeError(
            f"benchmark {file} cannot be read ({type(error).__name__})", expected, "see normalize.benchmarks"
        ) from error
    if not rows or not all(isinstance(row.get("instance_id"), str) for row in rows):
        raise NormalizeError(f"benchmark {file} has no instances", expected, "see normalize.benchmarks")
    return rows
