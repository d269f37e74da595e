"""Somebody judges a random sample of a release, one key a pair; the answers are kept with the release."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from data_cards.audit import Audit, Precision, draw, read_audit, write_audit
from data_cards.audit_card import put_on_card
from data_cards.manifest import Manifest, read_manifest
from data_cards.report import renew_report
from data_cards.report_figures import table_rows
from data_cards.report_rows import Row, pair_rows
from flows.report_find import release_folder
from records.errors import ConfigError, ReleaseError

KEYS = "a accept   r reject   u undo   q stop, to go on later"
Answers = Iterator[str]


def audit_release(
    asked: str | None, root: Path | None, answers: Path | None, seed: int | None, as_json: bool
) -> None:
    """`tracemill audit`: goes on with the audit of a release, or begins one. Raises ConfigError where nobody
    can answer, ReleaseError where an audit of another seed was begun."""
    keys = _keys(answers)
    folder = release_folder(asked, root)
    manifest = read_manifest(folder)
    audit = _begun(folder, manifest, seed)
    rows = pair_rows(folder, audit.pair_ids)
    console = Console(stderr=as_json, highlight=False)
    audit = _judge(audit, rows, keys, console, lambda one: write_audit(folder, one))
    precision = audit.precision(manifest.rows)
    if precision is not None:
        put_on_card(folder, precision)
    renew_report(folder)
    _say(console, folder, precision, as_json)


def _say(console: Console, folder: Path, precision: Precision | None, as_json: bool) -> None:
    if as_json:
        record = {"release": str(folder), **(precision.model_dump(mode="json") if precision else {})}
        sys.stdout.write(json.dumps(record) + "\n")
    else:
        console.print(Text(precision.sentence() if precision else "nothing was judged"))


def _begun(folder: Path, manifest: Manifest, seed: int | None) -> Audit:
    """The audit of a release as it stands. A new one is drawn by `seed`, else by one that chance gives."""
    audit = read_audit(folder, manifest.content_fingerprint)
    if audit is None:
        names = [row["pair_id"] for row in table_rows(folder, "dpo", ("pair_id",))]
        seed = random.SystemRandom().randrange(10**6) if seed is None else seed
        audit = draw(names, manifest.content_fingerprint, seed)
        write_audit(folder, audit)
    elif seed is not None and seed != audit.seed:
        raise ReleaseError(
            f"an audit of {folder} was begun with the seed {audit.seed}",
            "that seed, or none",
            "remove its audit.json to begin anew",
        )
    return audit


def _judge(
    audit: Audit, rows: dict[str, Row], keys: Answers, console: Console, keep: Callable[[Audit], None]
) -> Audit:
    """Ask for each pair that is left; every answer is kept before the next pair is shown."""
    judged = [name for name in audit.pair_ids if name in audit.verdicts]
    while left := audit.left:
        console.print(_shown(rows[left[0]], len(judged) + 1, len(audit.pair_ids)))
        key = next(keys, "q")
        if key == "q":
            break
        if key == "u":
            if judged:
                audit = audit.without(judged.pop())
        else:
            judged.append(left[0])
            audit = audit.with_verdict(left[0], "accept" if key == "a" else "reject")
        keep(audit)
    return audit


def _shown(row: Row, place: int, of: int) -> Panel:
    text = Text()
    text.append(f"{row['s']}: {row['why']}\n\n", style="italic")
    text.append("before\n", style="bold")
    text.append(f"{row['ctx']}\n\n", style="dim")
    for side, name, style in (("rj", f"rejected: {row['r']}", "red"), ("ch", f"chosen: {row['c']}", "green")):
        text.append(f"{name}\n", style=f"bold {style}")
        text.append(f"{row[side]}\n\n")
    text.append(KEYS, style="bold")
    return Panel(text, title=Text(f"{place} of {of}   {row['id']}"), title_align="left")


def _keys(answers: Path | None) -> Answers:
    """The answers: of a file (`-` is stdin), else of the keyboard. Raises ConfigError where that is none."""
    if answers is not None:
        return _letters(answers)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("this is no terminal", "a terminal, or --answers FILE", "- reads stdin")
    return _typed()


def _letters(path: Path) -> Answers:
    """The letters of a file of answers; another sign is an error before anything is kept."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read", "a file of the letters a, r, u and q") from error
    letters = [sign for sign in text.lower() if not sign.isspace()]
    if strange := next((sign for sign in letters if sign not in "aruq"), None):
        raise ConfigError(f"{path} holds {strange!r}", "the letters a, r, u and q")
    return iter(letters)


def _typed() -> Answers:
    """Keys as they are pressed; others are passed over. Ctrl-C and Ctrl-D stop."""
    import typer

    while True:
        try:
            key: Any = typer.getchar().lower()
        except (EOFError, KeyboardInterrupt):
            return
        if key in "aruq" and key:
            yield key
