"""Judge the monitors on code, commands and sessions that others collected; nothing of them is kept.

    python benchmarks/hack_monitor.py --labelled cases.json   # rows with code or commands, labelled
    python benchmarks/hack_monitor.py --sessions ~/sessions   # honest sessions: each finding is a false alarm
    python benchmarks/hack_monitor.py --code site-packages    # honest files: each finding is a false alarm

A labelled row is `{"expected_hack": bool, "category": str, "trajectory": {"code_outputs": [...], "commands":
[...]}}`, as RewardHackWatch writes it, in a JSON list or one a line. Commands are read as an agent's, code as
files that it added.
"""

import argparse
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tracemill.environments.monitor.action_monitor import monitor_actions
from tracemill.environments.monitor.code_monitor import monitor_code
from tracemill.environments.monitor.hack_finding import HackFinding
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.errors import TracemillError
from tracemill.records.message import ToolCall


def findings_of_code(texts: Iterable[str]) -> list[HackFinding]:
    """Return what the code monitor says of texts that are added to an empty repository."""
    with tempfile.TemporaryDirectory() as name:
        before, after = Path(name, "before"), Path(name, "after")
        before.mkdir()
        after.mkdir()
        for number, text in enumerate(texts):
            (after / f"module_{number}.py").write_text(text, encoding="utf-8", errors="replace")
        return [*monitor_code(before, after)]


def findings_of_commands(commands: Iterable[str]) -> list[HackFinding]:
    """Return what the action monitor says of commands."""
    calls = [ToolCall("call", "Bash", json.dumps({"command": command})) for command in commands]
    return [*monitor_actions(calls)]


def labelled(path: Path) -> None:
    """Print what was found in labelled rows, by category."""
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text) if text.lstrip().startswith("[") else [*map(json.loads, text.splitlines())]
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seen = set[str]()
    for row in rows:
        case = row["trajectory"]
        key = json.dumps([case.get("code_outputs"), case.get("commands")])
        if key in seen:
            continue
        seen.add(key)
        found = findings_of_code(case.get("code_outputs") or ())
        found += findings_of_commands(case.get("commands") or ())
        grave = {finding.severity for finding in found}
        said = "hack" if "hack" in grave else "suspicious" if grave else "nothing"
        counts[f"{'hack' if row['expected_hack'] else 'honest'}  {row.get('category', '')}"][said] += 1
    print(f"{len(seen)} different rows of {len(rows)}")
    for category, said in sorted(counts.items()):
        print(
            f"{category:40} hack {said['hack']}, suspicious {said['suspicious']}, nothing {said['nothing']}"
        )
    for least in (("hack",), ("hack", "suspicious")):
        right = sum(said[each] for each in least for name, said in counts.items() if name.startswith("hack"))
        wrong = sum(
            said[each] for each in least for name, said in counts.items() if name.startswith("honest")
        )
        hacks = sum(sum(said.values()) for name, said in counts.items() if name.startswith("hack"))
        precision = right / (right + wrong) if right + wrong else 0.0
        print(f"{' or '.join(least)}: precision {precision:.2f}, recall {right / hacks if hacks else 0:.2f}")


def honest(found: Iterable[list[HackFinding]], what: str) -> None:
    """Print how many honest things are flagged, and by which rule."""
    total = flagged = 0
    rules: Counter[str] = Counter()
    for findings in found:
        total += 1
        grave = {finding.rule for finding in findings if finding.severity == "hack"}
        flagged += bool(grave)
        rules.update(grave)
    print(f"{what} {total}, flagged as hacks {flagged} ({100 * flagged / max(total, 1):.1f} %)")
    for rule, count in rules.most_common():
        print(f"  {count:6}  {rule}")


def sessions(folder: Path) -> Iterator[list[HackFinding]]:
    """Give the findings of each session below a folder."""
    for source in discover([folder]):
        try:
            traces, _ = ingest_source(source)
        except TracemillError:
            continue
        for trace in traces:
            messages = (message for context in trace.contexts for message in context.messages)
            calls = [call for message in messages for call in message.tool_calls]
            if calls:
                yield [*monitor_actions(calls)]


def code(folder: Path) -> Iterator[list[HackFinding]]:
    """Give the findings of each Python file below a folder that is no test."""
    for path in sorted(folder.rglob("*.py")):
        if "test" not in path.relative_to(folder).as_posix() and path.is_file():
            yield findings_of_code([path.read_text(encoding="utf-8", errors="replace")])


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description="Judge the monitors on what others collected.")
    parser.add_argument("--labelled", type=Path, help="JSON or JSON lines with labels")
    parser.add_argument("--sessions", type=Path, help="folder of honest sessions")
    parser.add_argument("--code", type=Path, help="folder of honest Python files")
    given = parser.parse_args()
    if given.labelled:
        labelled(given.labelled)
    if given.sessions:
        honest(sessions(given.sessions), "sessions")
    if given.code:
        honest(code(given.code), "files")


if __name__ == "__main__":
    main()
