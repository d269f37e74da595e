"""Map command lines to operations and targets, by a table of programs."""

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tracemill.harnesses.core.vocabulary import READ_ONLY, Operation
from tracemill.harnesses.shell.parse_line import SimpleCommand, parse_command
from tracemill.harnesses.shell.program_tables import (
    FORFEIT,
    GIT_READS,
    INTERPRETERS,
    PROGRAMS,
    RUNNERS,
    SETUP_PROGRAMS,
    SUBMIT_COMMANDS,
    TEST_DRIVERS,
    TEST_FILE,
    TEST_WORD,
    WRAPPERS,
)
from tracemill.records.placeholders import strip_placeholder_angles


@dataclass(frozen=True, slots=True)
class CommandEffect:
    """The effect of a command: operation, target, and whether it changes anything."""

    operation: Operation
    target: str | None
    mutating: bool


_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_SHELLS = frozenset({"bash", "sh"})
_EXPANDED = re.compile(r"[$`\\]|\A['\"].*['\"]\Z|\A\S*\Z")
_IN_PLACE = re.compile(r"-[a-zA-Z]*i")
_LINES = re.compile(r"[\d,:$]+p?")
_PYTHON = re.compile(r"python[\d.]*")
_XARGS_WITH_VALUE = frozenset({"-I", "-n", "-P", "-L", "-d", "-s", "-a", "-E"})
_SHOWS = frozenset({Operation.READ, Operation.SEARCH, Operation.LIST})
_DRY_RUN_OPTIONS = frozenset({"--check", "--stat", "--numstat", "--summary", "--dry-run"})
"""Options with which `git apply` and `git commit` change nothing."""
UNREADABLE = CommandEffect(Operation.RUN, None, True)


@lru_cache(maxsize=4096)
def find_command_operation(line: str) -> CommandEffect:
    """Return the operation of a command line.

    A line that begins with a submission is FINISH. Else the first command that writes files decides, else the
    first that is not set-up (`cd`, `echo`, `export`, ...). `cd X &&` is folded into relative paths. A line
    that cannot be parsed is judged by its first word.
    """
    commands = parse_command(line)
    if commands is None:
        return _by_first_word(line)
    if commands and commands[0].argv[:2] in SUBMIT_COMMANDS:
        return CommandEffect(Operation.FINISH, None, True)
    if len(commands) == 1 and (inner := unwrap_operation_line(commands[0])) is not None:
        return find_command_operation(inner)
    folder, effects = "", []
    for command in commands:
        if command.argv[:1] == ("cd",) and len(command.argv) > 1:
            folder = join_path(folder, command.argv[1])
            continue
        effect = simple_command_operation(command, folder)
        if effect is not None:
            effects.append((effect, command))
    return choose_effect(effects)


def unwrap_operation_line(command: SimpleCommand) -> str | None:
    """Return the line that `bash -c LINE` runs, None for any other command.

    None is returned too for a single word, and where the outer shell changes the line.
    """
    argv = command.argv
    if len(argv) != 3 or argv[0] not in _SHELLS or argv[1] not in ("-c", "-lc"):
        return None
    has_more = command.assignments or command.redirects or command.keywords or command.heredoc is not None
    return None if has_more or _EXPANDED.search(argv[2]) else argv[2]


@lru_cache(maxsize=4096)
def unwrap_operation_command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command inside its wrappers: `sudo`, `timeout 60`, `poetry run`, `python -m`."""
    words = argv
    while words:
        program = words[0].rpartition("/")[2]
        runner = RUNNERS.get(words[0])
        skipped = 0 if runner is None or words[1 : len(runner) + 1] != runner else len(runner) + 1
        if program == "xargs" and len(words) > 1:
            words = _without_xargs_options(words[1:])
        elif program in WRAPPERS and len(words) > 1:
            words = _without_options(words[1:], WRAPPERS[program])
        elif skipped and len(words) > skipped:
            words = _without_options(words[skipped:], 0)
        elif words[1:2] == ("-m",) and len(words) > 2 and _PYTHON.fullmatch(program):
            words = words[2:]
        else:
            break
    return words


@lru_cache(maxsize=4096)
def join_path(folder: str, path: str) -> str:
    """Return `path` as seen from `folder`, normalised; absolute and home paths stay as they are."""
    path, folder = strip_placeholder_angles(path), strip_placeholder_angles(folder)
    if path.startswith(("/", "~", "$")) or not folder:
        return posixpath.normpath(path) if path else folder
    return posixpath.normpath(posixpath.join(folder, path))


def _without_options(words: tuple[str, ...], values: int) -> tuple[str, ...]:
    start = 0
    while start < len(words) and (words[start].startswith("-") or _ASSIGNED.match(words[start])):
        start += 1
    return words[start + values :]


def _without_xargs_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that `xargs` runs; the `{}` in `-i {}` is part of the option."""
    start = 0
    while start < len(words) and words[start].startswith("-"):
        valued = words[start] in _XARGS_WITH_VALUE or (
            words[start] == "-i" and words[start + 1 :][:1] == ("{}",)
        )
        start += 2 if valued else 1
    return words[start:]


def choose_effect(effects: list[tuple[CommandEffect, SimpleCommand]]) -> CommandEffect:
    """Return the effect of several commands together.

    The first that writes files decides, except a `tee` that stores the output of a test run; else the first
    that is not set-up.
    """
    if len(effects) < 2:
        return effects[0][0] if effects else CommandEffect(Operation.RUN, None, False)
    work = [each for each in effects if not is_setup(each[1])] or effects
    for effect, command in work:
        kept = work[0][0].operation == Operation.RUN_TEST and command.argv[:1] == ("tee",)
        if effect.mutating and effect.operation in (Operation.EDIT, Operation.CREATE) and not kept:
            return effect
    mutating = any(effect.mutating for effect, _ in effects)
    first = work[0][0]
    return CommandEffect(first.operation, first.target, mutating)


def is_setup(command: SimpleCommand) -> bool:
    """Return whether a command only prepares for another one, or tidies up."""
    words = unwrap_operation_command(command.argv)
    if command.writes_to is not None and not command.writes_to.startswith("/tmp"):
        return False
    tidies = words[:2] == ("rm", "-rf") and command.argv[:1] != ("xargs",)
    return not words or words[0] in SETUP_PROGRAMS or tidies


@lru_cache(maxsize=4096)
def simple_command_operation(command: SimpleCommand, folder: str) -> CommandEffect | None:
    """Return what one simple command does in `folder`, None if it only filters the input of a pipe."""
    words = unwrap_operation_command(command.argv)
    target = command.writes_to
    program = words[0].rpartition("/")[2] if words else ""
    if target is not None and (command.heredoc is not None or program in ("cat", "echo", "printf", "")):
        operation = Operation.EDIT if command.appends else Operation.CREATE
        return CommandEffect(operation, join_path(folder, target), True)
    if not words:
        return None
    piped = command.joiner in ("|", "|&")
    if piped and program not in ("tee", "sed", "perl") and PROGRAMS.get(program) != Operation.EDIT:
        return (
            CommandEffect(Operation.RUN, program, True) if _runs_its_input(command, program, words) else None
        )
    effect = _program_effect(program, words, folder)
    if target is not None and not piped and _is_permanent(target) and effect.operation in _SHOWS:
        return CommandEffect(
            Operation.EDIT if command.appends else Operation.CREATE, join_path(folder, target), True
        )
    return effect


def _is_permanent(path: str) -> bool:
    return not path.startswith(("/tmp", "/dev/", "&"))


def _runs_its_input(command: SimpleCommand, program: str, words: tuple[str, ...]) -> bool:
    """Return whether the piped input is executed: by a shell, or by an interpreter without a program."""
    return command.argv[:1] != ("xargs",) and INTERPRETERS.match(program) is not None and not _operands(words)


def _program_effect(program: str, words: tuple[str, ...], folder: str) -> CommandEffect:
    if program in ("sed", "perl") and _edits_in_place(words):
        return CommandEffect(Operation.EDIT, _last_path(words, folder), True)
    if program == "sed":
        return CommandEffect(Operation.READ, _last_path(words, folder), False)
    if program == "git":
        return _git_effect(words, folder)
    if program == "find" and (operation := _find_action(words)) is not None:
        place = join_path(folder, words[1]) if not words[1].startswith("-") else folder or "."
        return CommandEffect(operation, place, operation not in READ_ONLY)
    if _runs_tests(program, words):
        return CommandEffect(Operation.RUN_TEST, " ".join((program, *_operands(words))), True)
    operation = PROGRAMS.get(program)
    if operation is None or (program == "gofmt" and "-w" not in words):
        return CommandEffect(Operation.RUN, _run_target(words, folder), program not in SETUP_PROGRAMS)
    if operation == Operation.FINISH:
        return CommandEffect(operation, FORFEIT if program == "exit_forfeit" else None, True)
    return CommandEffect(operation, _target(operation, program, words, folder), operation not in READ_ONLY)


def _target(operation: Operation, program: str, words: tuple[str, ...], folder: str) -> str | None:
    operands = _operands(words)
    if operation == Operation.SEARCH:
        return _search_target(program, words, operands, folder)
    if operation == Operation.LIST and program != "stat":
        numbers = {word for before, word in pairwise(words) if before[:1] == "-" and word.isdigit()}
        return join_path(folder, next((each for each in operands if each not in numbers), "."))
    if operation in (Operation.VCS, Operation.RUN_TEST):
        return " ".join((program, *operands[:2]))
    if program in ("open", "create", "filemap"):
        return join_path(folder, operands[0]) if operands else None
    return _last_path(words, folder) if operation != Operation.WEB else next(iter(operands[-1:]), None)


def _search_target(program: str, words: tuple[str, ...], operands: list[str], folder: str) -> str | None:
    if program in ("find", "fd"):
        for option in ("-name", "-iname", "-path", "-regex"):
            if option in words[:-1]:
                return words[words.index(option) + 1]
        return join_path(folder, operands[0]) if operands else folder or "."
    return operands[0] if operands else None


def _git_effect(words: tuple[str, ...], folder: str) -> CommandEffect:
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c", "--git-dir", "--work-tree") else rest[1:]
    verb = rest[0] if rest else ""
    if verb == "grep":
        return CommandEffect(Operation.SEARCH, next(iter(_operands(tuple(rest))), None), False)
    if verb == "apply" and _DRY_RUN_OPTIONS.isdisjoint(rest):
        return CommandEffect(Operation.EDIT, _last_path(words, folder), True)
    if verb in ("apply", "commit"):
        option = next((word for word in rest if word in _DRY_RUN_OPTIONS or word == "--amend"), "")
        return CommandEffect(Operation.VCS, f"git {verb} {option}".strip(), option not in _DRY_RUN_OPTIONS)
    read_only = verb in GIT_READS or (verb in ("branch", "tag", "remote", "stash", "config") and _lists(rest))
    return CommandEffect(Operation.VCS, f"git {verb}".strip(), not read_only)


def _lists(rest: list[str]) -> bool:
    if rest[0] == "stash":
        return rest[1:2] == ["list"] or rest[1:2] == ["show"]
    return all(word.startswith("-") or word == "list" for word in rest[1:]) and not {"-d", "-D"} & set(rest)


def _runs_tests(program: str, words: tuple[str, ...]) -> bool:
    operation = PROGRAMS.get(program)
    if operation is not None and program not in TEST_DRIVERS:
        return operation == Operation.RUN_TEST
    operands = [word for word in words[1:4] if not word.startswith("-")]
    if program in TEST_DRIVERS:
        return any(TEST_WORD.search(word) for word in operands[:2])
    script = operands[0] if INTERPRETERS.match(program) and operands else words[0]
    return bool(TEST_FILE.search(script)) or (script.endswith("manage.py") and "test" in operands)


def _operands(words: tuple[str, ...]) -> list[str]:
    return [word for word in words[1:] if not word.startswith("-")]


def _find_action(words: tuple[str, ...]) -> Operation | None:
    """Return what `find` does to the files it finds, None if it only lists them."""
    if "-delete" in words:
        return Operation.EDIT
    for action in ("-exec", "-execdir", "-ok"):
        if action in words[:-1]:
            inner = unwrap_operation_command(words[words.index(action) + 1 :])
            return PROGRAMS.get(posixpath.basename(inner[0]), Operation.RUN) if inner else None
    return None


def _edits_in_place(words: tuple[str, ...]) -> bool:
    return any(_IN_PLACE.match(word) or word.startswith("--in-place") for word in words[1:])


def _last_path(words: tuple[str, ...], folder: str) -> str | None:
    operands = _operands(words)
    if words[0].endswith(("sed", "awk", "perl", "jq")) and not {"-e", "-f"} & set(words):
        operands = operands[1:]
    names = [word for word in operands if not _LINES.fullmatch(word)]
    return join_path(folder, names[-1]) if names else None


def _run_target(words: tuple[str, ...], folder: str) -> str:
    """Return program and subcommand, or the interpreter's script."""
    operands = _operands(words)
    program = posixpath.basename(words[0])
    if INTERPRETERS.match(program) and operands and not words[1].startswith("-"):
        return f"{program} {join_path(folder, operands[0])}"
    if INTERPRETERS.match(program) and "-c" in words[1:2]:
        return f"{program} -c"
    return " ".join((program, *operands[: 2 if operands[:1] in (["run"], ["exec"]) else 1]))


def _by_first_word(line: str) -> CommandEffect:
    word = next(iter(re.sub(r"^\s*cd \S+\s*(?:&&|;)", "", line).split()), "")
    operation = PROGRAMS.get(posixpath.basename(word))
    if operation is None or operation == Operation.FINISH:
        return UNREADABLE
    return CommandEffect(operation, None, operation not in READ_ONLY)
