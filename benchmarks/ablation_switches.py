"""Name the switches of `ablation.py`: what each replaces, and by what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemill.agreement.calls.effect import ActionEffect
from tracemill.agreement.equivalence.ladder import ActionKeys
from tracemill.harnesses.core.vocabulary import WRITES, Operation
from tracemill.harnesses.shell.operations import CommandEffect, find_command_operation, join_path
from tracemill.harnesses.shell.parse_line import parse_command


@dataclass(frozen=True, slots=True)
class Switch:
    """A named change: functions of the package and their replacements, or fields of the policy."""

    name: str
    functions: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)


def first(value: Any, *_: Any, **__: Any) -> Any:
    """Return the first argument unchanged."""
    return value


def none(*_: Any, **__: Any) -> None:
    """Return None."""


def no(*_: Any, **__: Any) -> bool:
    """Return False."""
    return False


def yes(*_: Any, **__: Any) -> bool:
    """Return True."""
    return True


def nothing(*_: Any, **__: Any) -> tuple[()]:
    """Return an empty tuple."""
    return ()


def by_intent_key(one: ActionKeys, other: ActionKeys) -> bool:
    """Compare intents by their keys alone, so that parts of a batch make pairs."""
    return one.intent == other.intent


def raw_statement(text: str) -> list[str]:
    """Return an SQL statement as written."""
    return ["raw", text]


def bare_intent(judged: CommandEffect, *_: Any) -> tuple[str, str | None]:
    """Return operation and target as the intent of a command line."""
    return str(judged.operation), judged.target


def whole_line(line: str, cwd: str | None) -> tuple[ActionEffect, ...]:
    """Return a command line as one effect of its words."""
    judged = find_command_operation(line)
    target = join_path(cwd or "", judged.target) if judged.target else None
    wrote = target if target and judged.operation in WRITES else ""
    key = ("line", cwd, parse_command(line) or line)
    intent = ("line", str(judged.operation), target)
    if judged.operation == Operation.FINISH:
        key, intent = ("finish",), ("finish",)
    return (ActionEffect(judged.operation, key, intent, judged.mutating, decisive=False, wrote=wrote or ""),)


def _policy(**fields: Any) -> Switch:
    return Switch("policy " + ", ".join(f"{name}={value}" for name, value in fields.items()), {}, fields)


def _rule(target: str, replacement: Any, name: str = "") -> Switch:
    return Switch(name or target, {f"agreement.{target}": replacement})


SWITCHES = (
    _policy(level="exact", far=False),
    _policy(level="canonical"),
    _policy(level="canonical", far=False),
    _policy(far=False),
    _policy(dead_zone=False),
    _policy(grounded=False),
    _policy(proven=False),
    _policy(min_families=1),
    _policy(bare_needs_all=False),
    _rule("equivalence.ladder.in_ladder_dead_zone", by_intent_key, "dead zone: parts of a batch"),
    _rule("voting.labels.label_separates_actions", no),
    _rule("voting.labels._does_less", no),
    _rule("voting.labels._needs_extra_vote", no),
    _rule("equivalence.student_action.mark_action_broken", first),
    _rule("equivalence.validity.why_calls_invalid", none),
    _rule("equivalence.validity.why_text_invalid", none),
    _rule("calls.schemas.why_schema_misfit", none),
    _rule("calls.text_written_calls.has_text_written_call", no),
    _rule("calls.arguments._is_redundant", no),
    _rule("calls.arguments._statement_form", raw_statement),
    _rule("calls.canonical._answer_of", none),
    _rule("calls.canonical.order_canonical_keys", first),
    _rule("calls.effect.is_scratch", no),
    _rule("shell.normal_form.place_commands", none),
    _rule("shell.pipelines.drop_cat_from_pipeline", tuple),
    _rule("shell.pipelines.drop_xargs_from_pipeline", tuple),
    _rule("shell.pipelines.normal_pipeline", tuple),
    _rule("shell.pipelines.parse_pipeline_find", none),
    _rule("shell.pipelines.cuts_pipeline_output", no),
    _rule("shell_effects.command_effects.build_command_effects", whole_line, "all effects of the shell"),
    _rule("shell_effects.command_effects._is_decisive", yes),
    _rule("shell_effects.intents.find_shell_intent", bare_intent),
    _rule("shell_effects.searches.parse_search_command", none),
    _rule("shell_effects.searches.parse_find_search", none),
    _rule("shell_effects.searches.parse_native_search", none),
    _rule("shell_effects.searches.parse_name_search", none),
    _rule("shell_effects.searches.parse_term_search", none),
    _rule("world.action_effects._known", none, "effects of native tools"),
    _rule("world.edit_effects.build_edit_effect", none),
    _rule("world.replay_context._record_call", none, "texts of files"),
)
