"""What is done only if something before it works, and so has another effect than what is done in any case."""

from collections.abc import Sequence
from dataclasses import replace

from tracemill.agreement.calls.effect import Deed
from tracemill.agreement.shell.normal_form import Placed
from tracemill.harnesses.shell.operations import unwrap_operation_command

_TESTS = frozenset({"test", "[", "[[", "false"})
_ASKS = frozenset("cd pushd popd grep egrep fgrep zgrep rg ag ack diff cmp which type pgrep".split())  # noqa: SIM905
"""Programs whose answer is also yes or no. Where only reads are behind, `&&` is taken for a habit."""
_GIT_ASKS = frozenset("-q --quiet --exit-code --verify --error-unmatch --is-ancestor grep ls-remote".split())  # noqa: SIM905
_PASS_ON = frozenset("head tail cat less more tee sort uniq wc cut tr nl tac rev sed awk column fold".split())  # noqa: SIM905
"""Programs that work whatever a pipe gives them."""


def mark_conditional_effects(done: Sequence[tuple[Sequence[Placed], Sequence[Deed]]]) -> tuple[Deed, ...]:
    """The deeds of a line, given as (pipeline, its deeds) in order: what `&&` puts behind a change or a test
    has another effect than behind `;`, and so has a change whose folder is in doubt."""
    if len(done) == 1 and not done[0][0][0].doubt:
        return tuple(done[0][1])
    told: list[Deed] = []
    fails = any(pipeline[0].command.argv[:1] == ("set",) for pipeline, _ in done)
    changes = asks = 0
    for pipeline, deeds in done:
        if pipeline[0].command.joiner != "&&":
            changes = asks = 0
        for deed in deeds:
            before = changes + asks if deed.mutating else changes
            if not before and not pipeline[0].doubt:
                told.append(deed)
                continue
            marks = (("cd", pipeline[0].doubt),) if pipeline[0].doubt and deed.mutating else ()
            marks += (("&&", before),) if before else ()
            told.append(replace(deed, effect=(*deed.effect, *marks)))
        words = unwrap_operation_command(pipeline[-1].command.argv)
        program = words[0].rpartition("/")[2] if words else ""
        if program in _ASKS or (program == "git" and not _GIT_ASKS.isdisjoint(words)):
            asks += 1
        elif program in _TESTS or any(deed.mutating for deed in deeds):
            changes += len(pipeline) == 1 or fails or program not in _PASS_ON
    return tuple(told)
