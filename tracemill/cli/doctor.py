"""Checks of this machine, a configuration and the services that it names.

Without `--live` no text is sent and nothing is spent: servers are asked about versions, keys and rights.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from rich.console import Console

from tracemill.cli.commands import quiet_prefect
from tracemill.flows.admission.redaction_setup import count_known_values, make_redactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.live_checks.live_check import LiveCheck
from tracemill.flows.preflight import check_teachers
from tracemill.flows.runtime.interrupts import ReportedInterrupt
from tracemill.flows.runtime.named_server import names_a_server
from tracemill.flows.service_checks.run_service_checks import run_service_checks
from tracemill.normalize.datajuicer.recipe import check_available, load_recipe
from tracemill.privacy.publish_gate.kingfisher import ABSENT, require_kingfisher, try_kingfisher
from tracemill.records.errors import ConfigError, TracemillError, WorkspaceError
from tracemill.records.printable import printable
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.api_keys import api_key
from tracemill.teachers.core.presets import PRESETS

Check = Callable[[RunSettings], str]
_MOST = 2_000  # characters of a line


def _python(_: RunSettings) -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


def _packages(_: RunSettings) -> str:
    wanted = ("prefect", "openai", "datasets", "pyarrow", "huggingface_hub")
    fastapi = tuple(int(part) for part in metadata.version("fastapi").split(".")[:2])
    if fastapi >= (0, 151):
        raise ConfigError(
            f"fastapi {metadata.version('fastapi')}", "below 0.151", "the Prefect server does not start"
        )
    return ", ".join(f"{name} {metadata.version(name)}" for name in wanted)


def _data_juicer(settings: RunSettings) -> str:
    check_available()
    recipe = load_recipe(settings.normalize.recipe)
    return f"py-data-juicer {metadata.version('py-data-juicer')}, recipe {recipe.name}"


def _teachers(settings: RunSettings) -> str:
    check_teachers(settings)
    _check_keys_at_hand()
    names = [teacher.name for teacher in settings.asked_teachers()]
    return ", ".join(names) or "none: self-repair pairs only, nothing is sent"


def _check_keys_at_hand() -> None:
    """Check the form of all presets' keys in the environment, even without teachers.

    Raises ConfigError if a value cannot be a key.
    """
    for teacher in (teacher for preset in PRESETS.values() for teacher in preset.teachers):
        variable = teacher.key_variable()
        if variable and os.environ.get(variable, "").strip():
            api_key(teacher, os.environ)


def _publish_gate(settings: RunSettings) -> str:
    require_kingfisher(os.environ, settings.release.require_second_opinion)
    version = try_kingfisher(os.environ)
    return f"own rules and kingfisher {version} (self-test passed)" if version else f"own rules; {ABSENT}"


def _privacy(settings: RunSettings) -> str:
    lists = settings.privacy
    known = count_known_values(make_redactor(None, lists))
    listed = f"{len(lists.redact)} entries to redact, {len(lists.allow)} to allow"
    return "; ".join([listed, *(f"{count} {what}" for what, count in known.items())])


def _sources(settings: RunSettings) -> str:
    from tracemill.flows.sources.shard_plan import plan_sources

    order = settings.sources.order()
    if not order:
        home = Path.home() / ".claude" / "projects"
        return f"none given; try --claude-code {home}" if home.is_dir() else "none given"
    away = len(order.hub) + len(order.urls)
    said = [f"{away} remote, not checked"] if away else []
    if order.given:
        plan = plan_sources(replace(order, hub=(), urls=()), settings.shard_mb)
        said.insert(0, f"{plan.files} files in {len(plan.shards)} shards")
    return ", ".join(said)


def _workspace(settings: RunSettings) -> str:
    root = settings.workspace
    if root.exists():
        Workspace.open(root, create=False)
        return f"{root}"
    parent = next(p for p in [root.absolute(), *root.absolute().parents] if p.exists())
    if not os.access(parent, os.W_OK):
        raise WorkspaceError(f"{parent} cannot be written", "a folder with write permission")
    return f"{root} (will be created)"


def _checks() -> Iterator[tuple[str, Check]]:
    yield "python", _python
    yield "packages", _packages
    yield "data-juicer", _data_juicer
    yield "teachers", _teachers
    yield "privacy", _privacy
    yield "publish gate", _publish_gate
    yield "sources", _sources
    yield "workspace", _workspace


def run_doctor_checks(settings: RunSettings, live: bool = False, yes: bool = False) -> int:
    """Print a line per check; return 0 if all pass, else 2.

    `live` adds checks that call teachers and the Hub; `yes` skips the confirmation. Raises ReportedInterrupt
    where they are interrupted.
    """
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    failed = 0
    if names_a_server():
        quiet_prefect()
    for name, check in _checks():
        try:
            console.print(f"ok    {name}: {printable(check(settings), _MOST)}")
        except (TracemillError, metadata.PackageNotFoundError) as error:
            failed += 1
            console.print(f"FAIL  {name}: {printable(str(error), _MOST)}")
    failed += sum(_print_check(check, console) for check in run_service_checks(settings))
    if live:
        failed += _check_live(settings, yes, console)
    return 2 if failed else 0


def _print_check(check: LiveCheck, console: Console) -> bool:
    """Print a check as a line; return whether it failed."""
    words = {"ok": "ok   ", "failed": "FAIL ", "not tried": "not tried"}
    console.print(f"{words[check.state]} {printable(check.name)}: {printable(check.said, _MOST)}")
    return check.state == "failed"


def _check_live(settings: RunSettings, yes: bool, console: Console) -> int:
    """Print one line per check against real servers; return how many failed."""
    from tracemill.flows.live_checks.run_live_checks import run_live_checks

    failed = 0
    try:
        for check in run_live_checks(settings, yes):
            failed += _print_check(check, console)
    except KeyboardInterrupt:
        raise ReportedInterrupt("what was sent may have been billed, within the $0.05") from None
    except TracemillError as error:
        failed += 1
        console.print(f"FAIL  live checks: {printable(str(error), _MOST)}")
    return failed
