"""Redaction measured: recall on planted secrets and personal data, false alarms, speed; beside other tools.

    python benchmarks/privacy/report.py [--tune] [--with-others --venv FOLDER] [--out FILE]

Kinds are split in two halves by a hash of their names. By default the report half is shown kind by kind; with
`--tune` the other one, with examples of what was missed, for whoever changes the rules.
"""

import argparse
import json
import os
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

import benign_files
import corpus
import real_sessions
import scores
import speed
import tables
import tools

_SCRIPT_FOLDERS = ("/usr/lib/node_modules", "/usr/local/lib/node_modules", "/usr/share/nodejs")


def ordinary(seed: int, megabytes: float) -> dict[str, list[str]]:
    """Return the corpora without private data, by name; a corpus that this machine lacks is empty."""
    paths = sysconfig.get_paths()
    library, packages = Path(paths["stdlib"]), Path(paths["purelib"])
    scripts = [path for path in (*map(Path, _SCRIPT_FOLDERS), packages) if path.is_dir()]
    return {
        "tool output and logs": benign_files.outputs(seed, megabytes),
        "source: standard library": benign_files.sources([library], ".py", seed, megabytes),
        "source: installed packages": benign_files.sources([packages], ".py", seed, megabytes),
        "source: JavaScript": benign_files.sources(scripts, ".js", seed, megabytes),
    }


def judge(tool: tools.Tool, plants: Sequence[corpus.Plant], texts: dict[str, list[str]]) -> dict:
    """Recall and false alarms of one tool."""
    if tool.run is None:
        return {"version": None, "problem": tool.problem}
    try:
        recall = _recall(tool, plants)
        nameless = _recall(tool, corpus.nameless())
        alarms = {
            name: scores.alarms(each, tool.run(each, [False] * len(each)).texts)
            for name, each in texts.items()
            if each
        }
    except RuntimeError as error:
        return {"version": tool.version, "problem": str(error)}
    return {
        "version": tool.version,
        "recall": {h: {c: recall.of(h, c) for c in scores.CATEGORIES} for h in scores.HALVES},
        "recall_mean_of_kinds": {
            h: {c: recall.mean_of_kinds(h, c) for c in scores.CATEGORIES} for h in scores.HALVES
        },
        "recall_without_name": {h: recall.bare(h) for h in scores.HALVES},
        "recall_no_format_no_name": {h: nameless.of(h, "secret") for h in scores.HALVES},
        "kinds": {h: recall.by_kind(h) for h in scores.HALVES},
        "alarms": {name: tables.alarm_row(each) for name, each in alarms.items()},
        "missed": recall.missed,
        "false_alarms": {name: each.false_ones for name, each in alarms.items()},
    }


def _recall(tool: tools.Tool, plants: Sequence[corpus.Plant]) -> scores.Recall:
    assert tool.run is not None
    texts = [plant.text for plant in plants]
    return scores.recall(plants, tool.run(texts, [p.setting.startswith("json") for p in plants]).texts)


def measure(given: argparse.Namespace) -> dict:
    """Everything asked for, as the JSON report holds it."""
    plants = corpus.plants(given.seed, given.per_kind)
    texts = ordinary(given.seed, given.megabytes)
    measured = [tools.ours()]
    if given.with_others:
        measured += tools.others(given.venv or Path(tempfile.gettempdir()) / "tracemill-other-tools")
    judged = {tool.name: judge(tool, plants, texts) for tool in measured}
    real = os.environ.get("TRACEMILL_REAL_TRACES")
    timed = _timed(texts, plants, Path(real) if real else None, given) if given.runs else {}
    for tool in measured if given.runs else []:
        if tool.run is not None and "problem" not in judged[tool.name]:
            runs = given.runs if tool.name == "tracemill" else 1
            judged[tool.name]["mb_s"] = {n: speed.redaction(tool, each, runs) for n, each in timed.items()}
    return {
        "seed": given.seed,
        "planted": len(plants),
        "kinds": {c: sum(k.category == c for k in corpus.kinds()) for c in scores.CATEGORIES},
        "tools": judged,
        "whole_process": speed.whole_process(Path(real) if real else None, given.runs, 30)
        if given.runs
        else None,
        "arguments": real_sessions.arguments_changed(Path(real)) if real else None,
    }


def _timed(
    texts: dict[str, list[str]], plants: Sequence[corpus.Plant], real: Path | None, given: argparse.Namespace
) -> dict[str, list[str]]:
    sessions = real_sessions.leaf_texts(real or speed.EXAMPLES, given.seed, given.megabytes)
    return {
        f"texts of {'recorded' if real else 'example'} sessions": sessions,
        "tool output and logs": speed.dense(texts["tool output and logs"], plants, given.seed),
        "source code": [t for name, each in texts.items() if name.startswith("source") for t in each],
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tune", action="store_true", help="show the tune half by kind, and what was missed")
    parser.add_argument("--with-others", action="store_true", help="install and run the other tools too")
    parser.add_argument("--venv", type=Path, help="folder for the other tools' environments")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--seed", type=int, default=corpus.SEED)
    parser.add_argument("--per-kind", type=int, help="that many plants for each kind; default: every setting")
    parser.add_argument("--megabytes", type=float, default=1.5, help="of each ordinary corpus")
    parser.add_argument("--runs", type=int, default=3, help="timed runs; 0: no timing")
    given = parser.parse_args()
    result = measure(given)
    tables.show(result, "tune" if given.tune else "report")
    if given.out:
        given.out.write_text(
            json.dumps(tables.plain(result, "tune" if given.tune else "report"), indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
