"""Take a trace, a project, or every trace that holds a text out of the workspace.

A text is forgotten with the whole traces that hold it: what teachers were shown hangs together, and
with the text cut out their answers would be answers to something else. The list of what was forgotten
is written first and the tables of traces last, so that a kill leaves a workspace that reads, lets
nothing back in, and finds the rest when the command is given again.
"""

import json
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracemill.flows.admission.forgotten_list import ForgottenList
from tracemill.flows.admission.glob_patterns import glob_folder_names
from tracemill.flows.admission.text_search import GONE, scrub_searched_text
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent import load_consents, save_consents
from tracemill.flows.forget.find_targets import ForgetTargets, find_target, find_target_json_files
from tracemill.flows.forget.forget_output import ForgetRemains, record_of, say_plan
from tracemill.flows.labeling.gate_weights import gate_weights_folder
from tracemill.flows.run_state.publish_log import read_publish_log
from tracemill.flows.run_state.run_records import HINT_ROWS, STATE_ROWS, sole_writer
from tracemill.flows.runtime.terminal import confirm_on_terminal
from tracemill.flows.sources.watermarks import forget_marks
from tracemill.records.errors import PrivacyError, ReleaseError, WorkspaceError
from tracemill.records.printable import printable_count
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.shard_rewrite import DROP_ORDER, drop_traces, sweep_rewritten_shards
from tracemill.records.storage.workspace import Workspace, workspace_trace_ids
from tracemill.teachers.ledger.forget import trace_of_forgotten_answer
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url

_STRUCTURE = frozenset(("schema", "run_id", "command", "fingerprint", "status", "stage"))
"""Keys of a manifest whose values tracemill reads again: never rewritten."""

_NAMING = frozenset(("path", "sources", "projects", "project", "repository", "name", "place", "unmatched"))
"""Keys of a manifest whose values may name a project."""


def forget_target(
    settings: RunSettings, target: str, kind: str | None, yes: bool, everything: bool
) -> dict[str, Any]:
    """Remove the target; return a record of the removed data and of what remains to be done.

    `-` reads the target from stdin. `yes` confirms it; `everything` is needed too if more may be removed
    than was meant.

    Raises WorkspaceError if the workspace has none of it, PrivacyError without confirmation. With kind
    `value` a text is added to the list even if it is not found.
    """
    if target == "-":
        target = sys.stdin.read().rstrip("\r\n")
    work = Workspace.open(settings.workspace, create=False)
    with sole_writer(work), _ledger(settings, work) as ledger:
        _clean_up(work)
        found = find_target(work, ledger, target, kind)
        if not found.anything():
            if ledger is not None:
                ledger.compact()
            if not _is_to_be_remembered(found, kind, yes):
                raise WorkspaceError(
                    f"{work.root} holds no such trace, project or text, nor a placeholder of such a text",
                    "one that `tracemill status` or a dataset names, or any text of a session",
                    "--as value --yes leaves later sessions with the text out",
                )
        else:
            _confirm(work, found, yes, everything)
        return remove_targets(work, ledger, found, target)


def _clean_up(work: Workspace) -> None:
    """Remove temporary files of killed processes, and the requests of a dry run.

    The former belong to no table or release; the latter can be written again.
    """
    sweep_rewritten_shards(work)
    work.dry_run_path.unlink(missing_ok=True)
    for left_over in work.releases_dir.glob("*/.*.tmp"):
        shutil.rmtree(left_over)


@contextmanager
def _ledger(settings: RunSettings, work: Workspace) -> Iterator[Ledger | None]:
    """Open the ledger of the workspace; None if there is none yet."""
    if settings.ledger_url is None and not work.ledger_path.exists():
        yield None
        return
    with Ledger(settings.ledger_url or sqlite_url(work.ledger_path)) as ledger:
        yield ledger


def _is_to_be_remembered(found: ForgetTargets, kind: str | None, yes: bool) -> bool:
    if found.kind != "value":
        return False
    if yes:
        return kind == "value"
    asked = (
        "There is no such trace, project or text, nor a placeholder of it. Leave out sessions that hold it?"
    )
    return sys.stdin.isatty() and sys.stderr.isatty() and confirm_on_terminal(asked)


def _confirm(work: Workspace, found: ForgetTargets, yes: bool, everything: bool) -> None:
    if yes and found.is_wide and not everything:
        why = "; the text is part of what redaction writes in place of others" if found.is_type else ""
        raise PrivacyError(
            f"{len(found.traces):,} of {found.of:,} traces would be removed{why}; nothing was removed",
            "confirmation of that number",
            "confirm it with --yes --all",
        )
    if yes:
        return
    if sys.stdin.isatty() and sys.stderr.isatty():
        say_plan(work, found)
        if confirm_on_terminal("Remove this for good?"):
            return
    size = f"{len(found.traces):,} of {found.of:,} traces, {printable_count(len(found.releases), 'release')}"
    raise PrivacyError(
        f"not confirmed: {size}; nothing was removed",
        "confirmation",
        "confirm it with --yes --all" if found.is_wide else "confirm it with --yes",
    )


def remove_targets(
    work: Workspace, ledger: Ledger | None, found: ForgetTargets, target: str
) -> dict[str, Any]:
    """Remove the data that was found, in an order that allows a repeat after a kill.

    Returns a record of the removed data, and of what remains to be done. The caller holds `sole_writer`.
    """
    sent_to, published = _sent_to(work, ledger, found), _published_at(found)
    versions = [(path.parent.name, path.name) for path in found.releases]
    names = [_project_name(target)] if found.kind == "project" else []
    values = [target] if found.kind == "value" else []
    listed = ForgottenList.of(work).adding(found.traces, names, versions, values)
    listed.write(work)
    forget_marks(work.root, found.traces, found.holds)
    for path in found.releases:
        _remove_release(path)
    answers = _forget_in_ledger(work, ledger, found, listed)
    _forget_in_consents(work, found)
    files = _scrub_manifests(work, found, target)
    shutil.rmtree(gate_weights_folder(work), ignore_errors=True)
    for folder in (HINT_ROWS, STATE_ROWS):
        shutil.rmtree(work.root / folder, ignore_errors=True)
    rows = {name: drop_traces(work, name, found.traces) for name in DROP_ORDER}
    return record_of(found, rows, answers, files, ForgetRemains(sent_to, published, ledger))


def _published_at(found: ForgetTargets) -> dict[str, list[str]]:
    """Return the Hub datasets that each version to be removed is published in."""
    places = {
        f"{path.parent.name}@{path.name}": [
            place["repo"]
            for place in read_publish_log(path.parent).get(path.name, [])
            if "retracted" not in place
        ]
        for path in found.releases
    }
    return {version: repos for version, repos in places.items() if repos}


def _project_name(target: str) -> str:
    return glob_folder_names(target)[-1] if "/" in target or "\\" in target else target


def _remove_release(path: Path) -> None:
    """Rename a release out of sight, then delete it; the next release removes leftovers of a kill."""
    gone = path.with_name(f".{uuid.uuid4().hex[:12]}.tmp")
    try:
        path.rename(gone)
        shutil.rmtree(gone)
    except OSError as error:
        raise ReleaseError(f"{path} cannot be removed ({error.strerror})", "a writable folder") from error


def _sent_to(work: Workspace, ledger: Ledger | None, found: ForgetTargets) -> list[str]:
    """Return the real models that received any of the target, by the stored replies and hints.

    The answers of a teacher that writes hints are in the ledger alone.
    """
    models: set[str] = set()
    for table in work.current("replies", found.traces):
        for row in table.select(["teacher", "model", "provider", "simulated"]).to_pylist():
            if not row["simulated"]:
                models.add(_named_model(row["model"] or row["teacher"], row["provider"]))
    for _, text in ledger.texts() if ledger is not None else ():
        if trace_of_forgotten_answer(text) in found.traces:
            reply = json.loads(text)
            if not reply.get("simulated"):
                models.add(
                    _named_model(reply.get("model") or reply.get("teacher", ""), reply.get("provider"))
                )
    return sorted(models)


def _named_model(model: str, provider: str | None) -> str:
    return f"{model} ({provider or 'provider not named'})"


def _forget_in_ledger(
    work: Workspace, ledger: Ledger | None, found: ForgetTargets, listed: ForgottenList
) -> int:
    """Remove the target's answers from the ledger; return their number.

    Answers that other traces of the workspace share stay, even if a forgotten trace paid for them.
    """
    if ledger is None:
        return 0
    keep: set[str] = set()
    for table in work.current("replies"):
        keys = table.column("request_key").to_pylist()
        ids = workspace_trace_ids("replies", table)
        keep |= {key for key, i in zip(keys, ids, strict=True) if i not in found.traces}
    aliases = {trace_id: listed.alias(trace_id) for trace_id in found.traces}
    return ledger.forget(aliases, found.holds, keep)


def _forget_in_consents(work: Workspace, found: ForgetTargets) -> None:
    """Remove a forgotten project from the consents, so that it needs a new one if it comes back."""
    if not found.projects:
        return
    before = load_consents(work)
    gone = {project.digest for project in found.projects}
    after = [
        replace(consent, projects=frozenset(p for p in consent.projects if p.digest not in gone))
        for consent in before
    ]
    if after != before:
        save_consents(work, [consent for consent in after if consent.projects])


def _scrub_manifests(work: Workspace, found: ForgetTargets, target: str) -> int:
    """Remove the text, or names of sessions and project, from manifests; return the number changed."""
    change, count = _change(found, target), 0
    for path in find_target_json_files(work):
        before = read_json_file(path)
        after = scrub_searched_text(before, change)
        if after != before:
            write_json(path, after)
            count += 1
    return count


def _change(found: ForgetTargets, target: str) -> Callable[[str, str], str]:
    named = [re.escape(name) for name in (_project_name(target),) if found.kind == "project"]
    name = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(named)})(?![A-Za-z0-9])", re.I) if named else None
    ids = re.compile("|".join(map(re.escape, found.traces | found.origins)) or "(?!)")

    def change(key: str, text: str) -> str:
        if key in _STRUCTURE:
            return text
        if ids.search(text):
            return GONE
        if found.needle is not None:
            return found.needle.without(text)
        return name.sub(GONE, text) if name is not None and key in _NAMING else text

    return change
