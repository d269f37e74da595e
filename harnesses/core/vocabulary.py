"""The words every harness is described with: operations, rules for tools, the harness itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tracemill.records.message import ToolCall, ToolSpec


class Operation(StrEnum):
    """What an action does, whatever the tool is called that does it."""

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
"""Operations that leave files and processes as they are; the order of such calls does not matter."""
WRITES = frozenset({Operation.EDIT, Operation.CREATE})
"""Operations that write files."""


@dataclass(frozen=True, slots=True)
class ToolRule:
    """How a tool is read.

    `target`: the arguments that may hold what the call is about, the first present one counts.
    `reading`: `shell` where an argument is a command line (the target), `editor` where the argument
    `command` chooses between viewing and editing, `sql` where one is a statement of SQL, `patch` where one
    is a patch that names its files, `plain` otherwise. `paths`: arguments that are file paths. `folder`:
    the argument that names the folder a command line runs in. `ignored`: arguments that change nothing
    but what a person is shown, or how long is waited.
    `standing`: what the call is about where no argument says so, such as the file that is open.
    """

    operation: Operation
    target: tuple[str, ...] = ()
    reading: Literal["plain", "shell", "editor", "sql", "patch"] = "plain"
    paths: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    standing: str | None = None
    folder: str = ""


@dataclass(frozen=True, slots=True)
class WrittenCommand:
    """How a harness takes a command from the text of an answer.

    `places` gives where commands stand in a text, `call` makes a tool call of one. Only a text with exactly
    one is an action. With `functions_first` a text with `<function=...>` blocks is not looked through, and
    the first of these counts.
    """

    places: Callable[[str], list[slice]]
    call: Callable[[str], ToolCall]
    functions_first: bool = False


@dataclass(frozen=True, slots=True)
class Harness:
    """One coding-agent harness in one version range.

    `system` is the stand-in system prompt, in our own words, shown where the recorded one is lost.
    `tools` are stand-in schemas by name; `core` those offered in every main session of these versions.
    `rules` say what each tool does. `text_actions` is True where an action may be a command written in
    the text of a message, in place of a tool call. `text_ends` is False where a text without a command
    neither ends the run nor reaches a person: the harness refuses it and asks again. `shell_stays` is False
    where each command line runs in a shell of its own, so that a `cd` reaches no later call. `written` says
    how commands are taken from texts, None where none are. `user_answers` is True where what a written
    command gave comes back as a message of the user.

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
    text_ends: bool = True
    shell_stays: bool = True
    written: WrittenCommand | None = None
    user_answers: bool = False
    since: tuple[int, int, int] = (0, 0, 0)
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
