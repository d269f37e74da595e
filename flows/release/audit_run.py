"""Let somebody judge a random sample of a release, one key a pair; keep the answers with it."""

import json
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tracemill.data_cards.card.audit_card import put_on_card
from tracemill.data_cards.model.audit_sample import (
    AUDIT,
    Audit,
    Precision,
    draw_audit_sample,
    read_audit,
    write_audit,
)
from tracemill.data_cards.model.find_release import LocalRelease, find_release
from tracemill.data_cards.model.manifest import Manifest, check_files
from tracemill.data_cards.report.audit_rows import Row, find_audit_rows
from tracemill.data_cards.report.figures import read_figure_rows
from tracemill.data_cards.report.write_report import write_report_from_folder
from tracemill.flows.release.audit_input import AuditAnswers, open_audit_input
from tracemill.flows.run_state.publish_log import read_publish_log
from tracemill.flows.run_state.run_records import releases_beside_run_records
from tracemill.records.errors import ReleaseError

KEYS = "a accept   r reject   u undo   q stop, to go on later"


def run_audit(
    asked: str | None, root: Path | None, answers: Path | None, seed: int | None, as_json: bool
) -> None:
    """Continue the audit of a release, or start one.

    Raises ConfigError without a source of answers, ReleaseError if a table is missing or was changed, or if
    the existing audit has another seed or other pairs.
    """
    console = Console(stderr=as_json, highlight=False)
    with open_audit_input(answers) as keys:
        release = find_release(asked, releases_beside_run_records(root))
        folder, manifest = release.folder, release.manifest
        check_files(folder, manifest)
        audit = _open_audit(folder, manifest, seed)
        rows = _rows_of(folder, audit)
        audit = _judge(audit, rows, keys, console, lambda one: write_audit(folder, one))
    precision = audit.precision(manifest.rows)
    if precision is not None:
        put_on_card(folder, precision)
    write_report_from_folder(folder)
    _say(console, release, audit, precision, as_json)


def _say(
    console: Console, release: LocalRelease, audit: Audit, precision: Precision | None, as_json: bool
) -> None:
    places = read_publish_log(release.folder.parent).get(release.manifest.version, [])
    pushed = [place["repo"] for place in places]
    if as_json:
        figures = precision.model_dump(mode="json") if precision else {}
        sys.stdout.write(json.dumps({"release": str(release.folder), **figures, "pushed": pushed}) + "\n")
        return
    console.print(Text(precision.sentence() if precision else "nothing was judged"))
    untold = [place["repo"] for place in places if place.get("audit") != audit.fingerprint]
    for repo in untold if precision else ():
        command = f"tracemill release publish --release {release.called} --hub {repo}"
        console.print(Text(f"run `{command}` to put it on the card there", overflow="ignore"), soft_wrap=True)


def _open_audit(folder: Path, manifest: Manifest, seed: int | None) -> Audit:
    """Return the existing audit of a release, or a new one.

    A new one is drawn with `seed`, else with a random seed.
    """
    audit = read_audit(folder, manifest.content_fingerprint)
    if not manifest.rows:
        raise ReleaseError(f"{folder} holds no pair to judge", "a release with pairs")
    if audit is None:
        names = [row["pair_id"] for row in read_figure_rows(folder, "dpo", ("pair_id",))]
        seed = random.SystemRandom().randrange(10**6) if seed is None else seed
        audit = draw_audit_sample(names, manifest.content_fingerprint, seed)
        write_audit(folder, audit)
    elif seed is not None and seed != audit.seed:
        raise ReleaseError(
            f"an audit of {folder} was begun with the seed {audit.seed}",
            "that seed, or none",
            "remove its audit.json to begin anew",
        )
    return audit


def _rows_of(folder: Path, audit: Audit) -> dict[str, Row]:
    rows = find_audit_rows(folder, audit.pair_ids)
    if strange := [name for name in audit.pair_ids if name not in rows]:
        raise ReleaseError(
            f"{folder / AUDIT} names {len(strange)} pairs that the release does not hold",
            "an audit made by tracemill",
            "move it away to begin anew",
        )
    return rows


def _judge(
    audit: Audit, rows: dict[str, Row], keys: AuditAnswers, console: Console, keep: Callable[[Audit], None]
) -> Audit:
    """Ask about each unjudged pair; each answer is stored before the next pair is shown. Ctrl-C stops."""
    judged = [name for name in audit.pair_ids if name in audit.verdicts]
    with suppress(KeyboardInterrupt):
        while left := audit.left:
            keys.fresh()
            console.print(_shown(rows[left[0]], len(judged) + 1, len(audit.pair_ids)))
            while not (key := keys.next()):
                console.print(Text(KEYS, style="bold"))
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
    text.append(f"{row['source']}: {row['why']}\n\n", style="italic")
    text.append("before\n", style="bold")
    text.append(f"{row['context']}\n\n", style="dim")
    for side, name, style in (("rejected", row["did"], "red"), ("chosen", row["chose"], "green")):
        text.append(f"{side}: {name}\n", style=f"bold {style}")
        text.append(f"{row[side]}\n\n")
    text.append(KEYS, style="bold")
    return Panel(text, title=Text(f"{place} of {of}   {row['id']}"), title_align="left")
