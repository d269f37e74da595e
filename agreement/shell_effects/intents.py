"""Derive the intent of a pipeline: the file, folder, program or script it is about."""

import re
from collections.abc import Sequence
from typing import Any

from tracemill.agreement.calls.effect import create_intent
from tracemill.agreement.shell.pipelines import cuts_pipeline_output
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.operations import CommandEffect, join_path, unwrap_operation_command
from tracemill.harnesses.shell.parse_line import SimpleCommand

_SUBCOMMAND = re.compile(r" (?!\d)")
"""A word after a program is a subcommand, a number is not."""
_TARGETED = re.compile(r"^(python|pip|gradle|mvn)(?:[\d.]+|w)(?= )")
_COMPARING = (("diff",), ("cmp",))
_OTHER_CHANGES: dict[tuple[str, ...], tuple[str, ...]] = {("mv",): ("moved",)}
_OTHER_CHANGES |= dict.fromkeys([("rm",), ("unlink",), ("rmdir",)], ("removed",))
_OTHER_CHANGES |= dict.fromkeys([("chmod",), ("chown",), ("chgrp",)], ("rights",))
"""Programs that change something of a file other than its text."""


def find_shell_intent(
    judged: CommandEffect, parts: Sequence[Any], commands: Sequence[SimpleCommand], folder: str
) -> tuple[Any, ...]:
    """Return the intent of a pipeline.

    That is a file or folder with what is done to it, else its words or the script.
    """
    if judged.operation == Operation.CREATE and judged.target:
        return create_intent(judged.target)
    if judged.operation == Operation.LIST and judged.target:
        return ("list", join_path(folder, judged.target))
    if judged.operation in (Operation.EDIT, Operation.READ) and judged.target:
        through = tuple(part[1][:1] for part in parts[1:] if not cuts_pipeline_output(part[1]))
        path = join_path(folder, judged.target)
        if judged.operation == Operation.READ and not judged.mutating:
            return ("read", path, *(commands[0].argv[:1] if commands[0].argv[:1] in _COMPARING else ()))
        change = _OTHER_CHANGES.get(unwrap_operation_command(commands[-1].argv)[:1], ())
        return (str(judged.operation), path, *change, *through)
    scripted = judged.operation != Operation.RUN or _SUBCOMMAND.search(judged.target or "")
    if scripted:
        changes = ("changes",) if judged.operation == Operation.VCS and judged.mutating else ()
        return (str(judged.operation), *changes, _TARGETED.sub(r"\1", judged.target or "") or None)
    return ("run", tuple(part for part in parts if not cuts_pipeline_output(part[1])) or tuple(parts))
