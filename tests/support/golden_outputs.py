"""Golden outputs: what readers, redaction, presentation, vote, pairs and selection give for stored inputs.

    python tests/support/golden_outputs.py [--write] [--file FILE]

Stored results are reused while integer versions are equal, so an output may change only with its version.
Without a flag the command prints the outputs of this checkout; `--write` stores them in
`tests/golden/outputs.json`, and refuses where an output changed and its version did not. A version that was
raised in this working tree need not be raised again: restore `outputs.json` first.

Every part starts from stored inputs of its own, so that a change of one part leaves the others as they are:
readers from session files (`golden/inputs`, `examples/sessions`), the others from `golden/traces.jsonl` (rows
of the traces table as recorded) and `golden/replies.jsonl` (replies, most of simulated teachers). Those two
are inputs like any other: `--write` never touches them, and no change of a reader does.
"""

import argparse
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracemill.agreement.voting.policy import POLICIES, VotePolicy
from tracemill.agreement.voting.vote import VOTE_VERSION, tally_votes
from tracemill.flows.admission.select_settings import SelectSettings
from tracemill.flows.admission.trace_inventory import SELECTION_VERSION, TraceEntry
from tracemill.flows.labeling.label_shard import ShownTrace, make_pairs
from tracemill.flows.sources.watermark_records import SeenTrace, StratumFields
from tracemill.harnesses.presentation import PRESENTATION_VERSION, Presentation, present_all
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.registry import FORMATS
from tracemill.pairs.teacher_pairs import PAIRS_VERSION, teacher_pair
from tracemill.privacy.redaction.redactor import REDACTION_VERSION, Redactor
from tracemill.records.identity import canonical_json, digest
from tracemill.records.message import Action
from tracemill.records.pair import DPOPair, StepVotes
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.table_rows import pairs_to_table, votes_to_table
from tracemill.records.storage.table_schemas import TRACES
from tracemill.records.storage.trace_rows import (
    calls_from_rows,
    tools_to_json,
    traces_from_table,
    traces_to_table,
)
from tracemill.records.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
STORED = GOLDEN / "outputs.json"
COMMAND = "python tests/support/golden_outputs.py --write"
Output = dict[str, Any]
"""Of one part: its `version`, digests of its `inputs` by name, and under the same names its `digests`."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is versioned by one integer. `version` names the integer, `beside` is what stands in its file."""

    name: str
    version: str
    number: int
    beside: Callable[..., Any]
    make: Callable[[], Iterator[tuple[str, str, Any]]]
    """Gives name, digest of the input and output, one after the other."""

    @property
    def file(self) -> str:
        """Return the file of the version, from the root of the checkout."""
        return str(Path(inspect.getfile(self.beside)).resolve().relative_to(ROOT))

    def output(self) -> Output:
        """Return what the part gives today."""
        made = {name: (given, result) for name, given, result in self.make()}
        return {
            "version": self.number,
            "inputs": {name: given for name, (given, _) in made.items()},
            "digests": {name: result for name, (_, result) in made.items()},
        }


def parts() -> dict[str, Part]:
    """Return every part by its name."""
    readers = [
        Part(
            f"reader {form.name}", "version", form.version, form.detect, functools.partial(_reader, form.name)
        )
        for form in FORMATS
    ]
    others = [
        Part("redaction", "REDACTION_VERSION", REDACTION_VERSION, Redactor, _redaction),
        Part("presentation", "PRESENTATION_VERSION", PRESENTATION_VERSION, present_all, _presentation),
        Part("vote", "VOTE_VERSION", VOTE_VERSION, tally_votes, _vote),
        Part("pairs", "PAIRS_VERSION", PAIRS_VERSION, teacher_pair, _pairs),
        Part("selection", "SELECTION_VERSION", SELECTION_VERSION, TraceEntry, _selection),
    ]
    return {part.name: part for part in (*readers, *others)}


@functools.cache
def outputs() -> dict[str, Output]:
    """Return what every part gives today; to be read only."""
    return {name: part.output() for name, part in parts().items()}


# ---------------------------------------------------------------- what is stored and what is found


def changed(stored: Output, found: Output) -> list[str]:
    """Return the names whose input is the same and whose output is not."""
    return [
        name
        for name, given in found["inputs"].items()
        if stored["inputs"].get(name) == given and stored["digests"].get(name) != found["digests"][name]
    ]


def fault_of(part: Part, stored: Output | None, found: Output) -> str | None:
    """Return why an output may not be stored as it is: it changed, and its version did not."""
    if stored is None or stored["version"] != found["version"]:
        return None
    names = changed(stored, found)
    raised = f"raise {part.version} in {part.file} and run {COMMAND}"
    return f"{part.name} gives another output of {_listed(names)}; {raised}" if names else None


def complaint_of(part: Part, stored: Output | None, found: Output) -> str | None:
    """Return what is wrong with the stored outputs of a part and what to do; None where they are today's."""
    if stored == found:
        return None
    if fault := fault_of(part, stored, found):
        return fault
    if stored is None:
        return f"nothing is stored of {part.name}; run {COMMAND}"
    if stored["version"] != found["version"]:
        return f"{part.version} is {found['version']} and {stored['version']} is stored; run {COMMAND}"
    both = {**stored["inputs"], **found["inputs"]}
    names = [name for name in both if stored["inputs"].get(name) != found["inputs"].get(name)]
    return f"{part.name} has other inputs: {_listed(names)}; run {COMMAND}"


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more


def read_stored(path: Path = STORED) -> dict[str, Output]:
    """Return the stored outputs by part; none where there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the outputs, or store them; return 1 and say why where that is refused."""
    parser = argparse.ArgumentParser(description="golden outputs of the versioned parts")
    parser.add_argument("--write", action="store_true", help="store the outputs of this checkout")
    parser.add_argument("--file", type=Path, default=STORED, help="where they are stored")
    given = parser.parse_args(arguments)
    found = outputs()
    text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if not given.write:
        sys.stdout.write(text)
        return 0
    stored = read_stored(given.file)
    faults = (fault_of(part, stored.get(name), found[name]) for name, part in parts().items())
    if said := [fault for fault in faults if fault]:
        sys.stderr.write(f"not written: {' | '.join(said)}\n")
        return 1
    given.file.write_text(text, encoding="utf-8")
    return 0


# ---------------------------------------------------------------- readers


def _reader(source: str) -> Iterator[tuple[str, str, Any]]:
    """Of each folder of sessions: a digest of every trace, by its file and id, and counts."""
    folders = sorted(path for path in (GOLDEN / "inputs" / source).iterdir() if path.is_dir())
    examples = ROOT / "examples" / "sessions" / source
    for folder in [*folders, *([examples] if examples.is_dir() else [])]:
        given = digest(*(part for path in _files(folder) for part in _named(path, folder)), size=8)
        yield str(folder.relative_to(ROOT)), given, _read(folder)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _named(path: Path, folder: Path) -> tuple[str, str]:
    return path.relative_to(folder).as_posix(), hashlib.blake2b(path.read_bytes()).hexdigest()


def _read(folder: Path) -> dict[str, Any]:
    traces: dict[str, str] = {}
    steps = contexts = messages = 0
    for file in discover([folder]):
        for trace in ingest_source(file)[0]:
            name = file.path.relative_to(folder).as_posix()
            traces[f"{name} {trace.trace_id}"] = trace_digest(trace)
            steps += trace.step_count
            contexts += len(trace.contexts)
            messages += sum(len(context.messages) for context in trace.contexts)
    return {"traces": traces, "contexts": contexts, "steps": steps, "messages": messages}


def trace_digest(trace: Trace) -> str:
    """Return a digest of all that is stored of a trace."""
    return _digest(traces_to_table([trace]).to_pylist()[0])


def _digest(value: Any) -> str:
    return digest(canonical_json(_filled(value)), size=8)


def _filled(value: Any) -> Any:
    """Return the value without nulls, empty lists and empty objects, so that a new field that nothing fills
    changes no digest."""
    if isinstance(value, Mapping):
        return {key: kept for key, item in value.items() if (kept := _filled(item)) not in (None, [], {})}
    return [_filled(item) for item in value] if isinstance(value, list | tuple) else value


# ---------------------------------------------------------------- traces and replies that are inputs


@functools.cache
def stored_traces() -> tuple[Trace, ...]:
    """Return the traces that all but the readers start from."""
    rows = [json.loads(line) for line in (GOLDEN / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    return tuple(traces_from_table(pa.Table.from_pylist(rows, schema=TRACES)))


def stored_replies() -> list[TeacherReply]:
    """Return the replies that are voted on; fields that are not stored have their defaults."""
    return [_reply(json.loads(line)) for line in _reply_lines()]


def _reply_lines() -> list[str]:
    return (GOLDEN / "replies.jsonl").read_text(encoding="utf-8").splitlines()


def _reply(row: dict[str, Any]) -> TeacherReply:
    text, calls = row.pop("text", None), row.pop("tool_calls", None)
    row = {"sample": 0, "order": 0} | row
    return TeacherReply(**row, action=None if text is None else Action(text, calls_from_rows(calls)))


# ---------------------------------------------------------------- redaction

_KEY = b"k" * 32
_KNOWN: dict[str, Any] = {
    "secrets": ["q7Zx81LmPw0RtYbN4sKd"],
    "home": "/home/dev",
    "user": "dev",
    "hosts": ["bench-07"],
}
_LISTS: dict[str, Any] = {
    "environ": {"HOME": "/home/me", "USER": "mira", "SHOP_API_TOKEN": "Zk3vQ9pLx2RtYw8", "LANG": "C.UTF-8"},
    "secrets": ["orchard-7781-seed"],
    "hostname": "workbench",
    "redact": ["seedbank", r"re:round\w*"],
    "allow": ["mira.holm@example.com", r"re:10\.4\.\d+\.\d+"],
}


def _redaction() -> Iterator[tuple[str, str, Any]]:
    """Of each trace: as it is redacted, as it is redacted again once more is known, and what was found. Of
    each kind of the privacy benchmark and of ordinary text: the text and what was found in it."""
    known, listed = redactors()
    for trace in stored_traces():
        redacted, found = known.redact_trace(trace)
        again = listed.redact_again(redacted)
        result = {"once": trace_digest(redacted), "again": trace_digest(again.trace)}
        given = _digest([trace_digest(trace), _KNOWN, _LISTS])
        yield f"trace {trace.trace_id}", given, result | {"found": dict(sorted(found.items()))}
    for name, texts in private_texts().items():
        results = [each.redact_text(text, "golden") for text in texts for each in (known, listed)]
        yield (
            name,
            _digest([texts, _KNOWN, _LISTS]),
            _digest([[text, dict(found)] for text, found in results]),
        )


def redactors() -> tuple[Redactor, Redactor]:
    """Return a redactor that knows exact values, and one that knows an environment and lists."""
    environ = _LISTS["environ"]
    lists = {name: given for name, given in _LISTS.items() if name != "environ"}
    return Redactor(key=_KEY, **_KNOWN), Redactor.from_environment(environ, key=_KEY, **lists)


def private_texts() -> dict[str, list[str]]:
    """Return two texts of every kind of the privacy benchmark, and ordinary texts, from its seed."""
    found: dict[str, list[str]] = {}
    with _benchmark("corpus", "benign_files") as (corpus, benign_files):
        for plant in corpus.plants(per_kind=2):
            found.setdefault(f"{plant.kind.category} {plant.kind.name}", []).append(plant.text)
        for place, text in enumerate(benign_files.outputs(corpus.SEED, 0.2)):
            found[f"ordinary {place:03d}"] = [text]
    return found


@contextmanager
def _benchmark(*names: str) -> Iterator[list[Any]]:
    """Import scripts of the privacy benchmark as they import each other."""
    folder, before = str(ROOT / "benchmarks" / "privacy"), set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield [__import__(name) for name in names]
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            if folder in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


# ---------------------------------------------------------------- presentation


def _presentation() -> Iterator[tuple[str, str, Any]]:
    """Of each trace: the label and the last prompt of each context, and all that is shown."""
    for trace in stored_traces():
        shown = present_all(trace)
        yield trace.trace_id, trace_digest(trace), {str(at): _shown(each) for at, each in shown.items()}


def _shown(shown: Presentation) -> dict[str, Any]:
    wire = [message.to_wire() for message in shown.messages]
    whole = [wire, list(shown.cuts), tools_to_json(shown.tools), list(shown.prompt_ids)]
    return {"label": shown.label, "last prompt": shown.prompt_ids[-1], "all": _digest(whole)}


# ---------------------------------------------------------------- vote and pairs


@functools.cache
def labels(policy: VotePolicy = POLICIES["default"]) -> tuple[dict[str, StepVotes], dict[str, list[DPOPair]]]:
    """Return the votes by step and the pairs by trace that the stored replies make, as a run makes them."""
    made = make_pairs([ShownTrace.of(trace) for trace in stored_traces()], current_replies(), policy)
    pairs: dict[str, list[DPOPair]] = {trace.trace_id: [] for trace in stored_traces()}
    for pair in made.pairs:
        pairs[pair.step_id.rsplit(":", 2)[0]].append(pair)
    return {votes.step_id: votes for votes in made.votes}, pairs


@functools.cache
def current_replies() -> tuple[TeacherReply, ...]:
    """Return the stored replies as answers to what is shown today, whatever presentation makes of it."""
    prompts = {
        question.step_id: question.prompt_id
        for trace in stored_traces()
        for question in ShownTrace.of(trace).questions()
    }
    return tuple(replace(reply, prompt_id=prompts[reply.step_id]) for reply in stored_replies())


def _vote() -> Iterator[tuple[str, str, Any]]:
    """Of each step with replies: the verdict under each policy, the votes under the default one."""
    replies: dict[str, list[str]] = {}
    for line in _reply_lines():
        replies.setdefault(json.loads(line)["step_id"], []).append(line)
    by_policy = {name: labels(policy)[0] for name, policy in POLICIES.items()}
    policies = canonical_json({name: asdict(policy) for name, policy in POLICIES.items()})
    for trace in stored_traces():
        given, tools = trace_digest(trace), present_all(trace)
        for state in trace.states():
            step_id = str(state.step_id)
            if step_id not in replies:
                continue
            offered = tools_to_json(tools[state.context.index].tools)
            result = {name: votes[step_id].verdict for name, votes in by_policy.items()}
            result["votes"] = _digest(votes_to_table([by_policy["default"][step_id]]).to_pylist())
            yield step_id, digest(given, offered, policies, *replies[step_id], size=8), result


def _pairs() -> Iterator[tuple[str, str, Any]]:
    """Of each trace: a digest of every pair, by its id and what it is. Votes and what is shown are inputs."""
    votes, pairs = labels()
    for trace in stored_traces():
        cast = [votes[step] for state in trace.states() if (step := str(state.step_id)) in votes]
        shown = [_shown(each) for each in present_all(trace).values()]
        given = _digest([trace_digest(trace), shown, votes_to_table(cast).to_pylist()])
        rows = {pair.pair_id: pair for pair in pairs[trace.trace_id]}
        yield trace.trace_id, given, {name: _pair(pair) for name, pair in rows.items()}


def _pair(pair: DPOPair) -> str:
    row = _digest(pairs_to_table([pair]).to_pylist())
    return f"{pair.chosen_operation} over {pair.rejected_operation} {row}"


# ---------------------------------------------------------------- selection

SELECTIONS: Mapping[str, SelectSettings] = {
    "projects": SelectSettings(projects=("parcels", "/home/*/shop", "seedbank")),
    "deny projects": SelectSettings(deny_projects=("almanac", "/testbed", "labels")),
    "repositories": SelectSettings(repositories=("orchard/*", "Parcels")),
    "deny repositories": SelectSettings(deny_repositories=("seedbank",)),
    "models": SelectSettings(models=("claude-*", "*qwen*")),
    "deny models": SelectSettings(deny_models=("gpt-*", "*SONNET*")),
    "outcomes": SelectSettings(outcomes=("resolved", "unknown")),
    "days": SelectSettings.model_validate({"since": "2026-01-01", "until": "2026-03-31"}),
}


def _selection() -> Iterator[tuple[str, str, Any]]:
    """Of each trace: why each selection leaves it out, which entries fit it, its line in the inventory."""
    settings = {
        name: each.model_dump(mode="json", exclude_defaults=True) for name, each in SELECTIONS.items()
    }
    for trace in stored_traces():
        out = {name: reason for name, each in SELECTIONS.items() if (reason := each.reason(trace))}
        fits = [list(each.matches(trace)) for each in SELECTIONS.values()]
        entry = TraceEntry.of(trace)
        seen = SeenTrace(trace.trace_id, trace.parent_trace_id, StratumFields.of(trace), entry).to_json()
        given = _digest([trace_digest(trace), settings])
        yield trace.trace_id, given, {"left out": out, "entry": _digest([seen, fits])}


if __name__ == "__main__":
    raise SystemExit(main())
