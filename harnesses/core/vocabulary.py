"""Types that describe harnesses: operations, rules for tools, the harness itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tracemill.records.message import ToolCall, ToolSpec


class Operation(StrEnum):
    """The kind of an action, whatever the name of its tool."""

    READ = "read"
    SEARCH = "search"
    LIST = "list"
    EDIT = "edit"
    CREATE = "create"
    RUN_TEST = "run_test"
    RUN = "run"
    VCS = "vcs"
    FINISH = "finish"
    ASK = "ask"
    PLAN = "plan"
    WEB = "web"
    OTHER = "other"


READ_ONLY = frozenset({Operation.READ, Operation.SEARCH, Operation.LIST, Operation.WEB, Operation.PLAN})
"""Operations that change no files or processes; the order of such calls does not matter."""
WRITES = frozenset({Operation.EDIT, Operation.CREATE})
"""Operations that write files."""
DECIDING = frozenset({Operation.EDIT, Operation.RUN_TEST, Operation.FINISH})
"""Operations that decide how a session ends. A pair is deciding if one of its sides has such an operation."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule for reading the arguments of a tool.

    - `target`: arguments that may hold the target of the call; the first present one counts.
    - `reading`: `shell` if the target is a command line, `editor` if the argument `command` selects
      viewing or editing, `sql` for an SQL statement, `patch` for a patch that names its files, `script` for a
      script that calls tools, else `plain`.
    - `paths`: arguments that are file paths.
    - `ignored`: arguments that change only what a person is shown, or the time waited.
    - `default_target`: the target if no argument names one, such as the open file.
    - `folder`: the argument that names the folder a command line runs in.
    - `outside`: arguments that ask for a command line to run outside of the agent's sandbox.
    """

    operation: Operation
    target: tuple[str, ...] = ()
    reading: Literal["plain", "shell", "editor", "sql", "patch", "script"] = "plain"
    paths: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    default_target: str | None = None
    folder: str = ""
    outside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextCommands:
    """A rule for taking commands from the text of an answer.

    `find` returns the places of commands in a text, `parse` makes a tool call of one. Only a text with
    exactly one command is an action. With `functions_first`, `<function=...>` blocks take precedence, and the
    first of them counts.
    """

    find: Callable[[str], list[slice]]
    parse: Callable[[str], ToolCall]
    functions_first: bool = False


@dataclass(frozen=True, slots=True)
class Harness:
    """One coding-agent harness in one version range.

    `system` is the stand-in system prompt, shown where the recorded one is lost, and `text_system` the one
    for runs without tool calls. `tools` are stand-in schemas by name, `core` the tools offered in every main
    session, and `rules` say what each tool does.

    - `text_actions`: an action may be a command in the text of a message.
    - `text_ends_run`: a text without a command ends the run or reaches a person; False if the harness
      refuses it and asks again.
    - `persistent_shell`: a `cd` affects later calls; False where each command line runs in a new shell,
      or nothing is known of it.
    - `text_commands`: how commands are taken from texts, None if none are.
    - `results_as_user`: results of commands in text come back as messages of the user.

    A session is of this harness where the name it gives begins with one of `prefixes` (with `name` where
    there are none), and its version is `since` or later, or its name ends with one of `suffixes`.
    """

    name: str
    versions: str
    system: str
    tools: Mapping[str, ToolSpec]
    core: tuple[str, ...]
    rules: Mapping[str, ToolRule]
    text_actions: bool = False
    text_system: str = ""
    text_ends_run: bool = True
    persistent_shell: bool = True
    text_commands: TextCommands | None = None
    results_as_user: bool = False
    since: tuple[int, int, int] = (0, 0, 0)
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
