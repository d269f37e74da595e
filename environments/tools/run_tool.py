"""Execute one call of a tool inside a sandbox: standard library alone.

    python -I -S run_tool.py < request.json

A request holds `tool`, `arguments` and `cwd`; the answer, behind the marker, `text`, `failed`, `kind`, `cwd`.
Everything happens here, as the user of the sandbox: a link to a file of the host leads nowhere.
"""

import fnmatch
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = "/repository"
MOST_LINES, MOST_CHARS, MOST_FOUND = 2000, 30_000, 100
_SKIPPED = {".git", "__pycache__", "node_modules", ".venv"}

Values = dict[str, Any]


class ToolError(Exception):
    """A tool refused a call; the text is shown to the agent."""


class CommandFailed(Exception):
    """A command ended with a code other than 0, or was stopped by a timeout."""

    def __init__(self, text: str, kind: str) -> None:
        """Set the text shown to the agent and the reason why the call counts as failed."""
        super().__init__(text)
        self.text, self.kind = text, kind


def wanted(arguments: Values, name: str, kind: type = str) -> Any:
    """Return a required argument of a type."""
    value = arguments.get(name)
    if not isinstance(value, kind):
        raise ToolError(f"InputValidationError: `{name}` is missing or of the wrong type")
    return value


def read_text(path: str) -> str:
    """Return the text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise ToolError(f"File does not exist: {path}") from None
    except IsADirectoryError:
        raise ToolError(f"EISDIR: {path} is a folder, not a file") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from None


def write_text(path: str, text: str) -> None:
    """Write a file, folders above it included."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror}") from None


def shown(lines: list[str], first: int = 1, separator: str = "\t") -> str:
    """Return lines with their numbers, as cat -n has them."""
    return "\n".join(f"{number:6}{separator}{line}" for number, line in enumerate(lines, first))


def cut(text: str) -> str:
    """Return a text cut in its middle where it is too long to be shown."""
    if len(text) <= MOST_CHARS:
        return text
    half = MOST_CHARS // 2
    return f"{text[:half]}\n... [{len(text) - 2 * half} characters cut] ...\n{text[-half:]}"


def shell(command: str, cwd: str, seconds: float) -> tuple[str, int | None, str]:
    """Run a command line with bash; return output, exit code (None if it was cut off) and new folder."""
    read_end, write_end = os.pipe()
    line = f"{command}\n__code=$?\npwd >&{write_end}\nexit $__code"
    process = subprocess.Popen(
        ["/bin/bash", "-c", line],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=[write_end],
    )
    os.close(write_end)
    try:
        output, _ = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, code = process.communicate()[0], None
    os.set_blocking(read_end, False)
    try:
        folder = os.read(read_end, 4096).decode().strip()
    except BlockingIOError:  # a process in the background holds the other end
        folder = ""
    os.close(read_end)
    return output.decode("utf-8", "replace"), code, folder if folder and Path(folder).is_dir() else cwd


# Claude Code


def claude_bash(arguments: Values, state: Values) -> str:
    """Run a command and return its output; the next call starts in the working directory it left.

    Raises CommandFailed on a timeout or a non-zero exit code.
    """
    milliseconds = arguments.get("timeout") or 30_000
    output, code, state["cwd"] = shell(
        wanted(arguments, "command"), state["cwd"], min(float(milliseconds) / 1000, state["seconds"])
    )
    text = cut(output.rstrip("\n"))
    if code is None:
        raise CommandFailed(f"{text}\nCommand timed out".strip(), "timeout")
    if code:
        raise CommandFailed(f"Exit code {code}\n{text}".rstrip(), "exit_code")
    return text


def claude_read(arguments: Values, state: Values) -> str:
    """Return lines of a file with their line numbers. Raises ToolError if it cannot be read."""
    text = read_text(wanted(arguments, "file_path"))
    first = max(1, int(arguments.get("offset") or 1))
    count = int(arguments.get("limit") or MOST_LINES)
    lines = text.splitlines()[first - 1 : first - 1 + count]
    if not text:
        return "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
    return cut(shown(lines, first, "→"))


def claude_write(arguments: Values, state: Values) -> str:
    """Create or overwrite a file and return Claude Code's message. Raises ToolError if it cannot."""
    path = wanted(arguments, "file_path")
    existed = Path(path).exists()
    write_text(path, wanted(arguments, "content"))
    return f"The file {path} has been updated." if existed else f"File created successfully at: {path}"


def claude_edit(arguments: Values, state: Values) -> str:
    """Replace a string in a file and return Claude Code's message.

    Raises ToolError if the string is absent, or occurs more than once without `replace_all`.
    """
    path, old = wanted(arguments, "file_path"), wanted(arguments, "old_string")
    new, text = wanted(arguments, "new_string"), read_text(path)
    count = text.count(old) if old else 0
    if old == new:
        raise ToolError("No changes to make: old_string and new_string are exactly the same.")
    if not count:
        raise ToolError(f"String to replace not found in file.\nString: {old}")
    if count > 1 and not arguments.get("replace_all"):
        raise ToolError(
            f"Found {count} matches of the string to replace, but replace_all is false.\nString: {old}"
        )
    changed = text.replace(old, new)
    write_text(path, changed)
    line = text[: text.index(old)].count("\n")
    part = changed.splitlines()[max(0, line - 3) : line + new.count("\n") + 4]
    said = f"The file {path} has been updated. Here's the result of running `cat -n` on a snippet of it:"
    return f"{said}\n{shown(part, max(0, line - 3) + 1, '→')}"


def claude_glob(arguments: Values, state: Values) -> str:
    """Return the paths of the files that match a glob pattern, one per line."""
    base = arguments.get("path") or state["cwd"]
    pattern = wanted(arguments, "pattern")
    found = [str(path) for path in sorted(Path(base).glob(pattern.removeprefix("/"))) if path.is_file()]
    return "\n".join(found[:MOST_FOUND]) or "No files found"


def claude_grep(arguments: Values, state: Values) -> str:
    """Return the files or lines that match a regular expression. Raises ToolError if it is invalid."""
    try:
        pattern = re.compile(wanted(arguments, "pattern"), re.IGNORECASE if arguments.get("-i") else 0)
    except re.error as error:
        raise ToolError(f"the pattern is no regular expression: {error}") from None
    mode = arguments.get("output_mode") or "files_with_matches"
    base, wanted_name = arguments.get("path") or state["cwd"], arguments.get("glob") or "*"
    files, lines = [], []
    for path in walk(base):
        if not fnmatch.fnmatch(Path(path).name, wanted_name):
            continue
        hits = [
            (number, line)
            for number, line in enumerate(read_text(path).splitlines(), 1)
            if pattern.search(line)
        ]
        if hits:
            files.append(f"{path}:{len(hits)}" if mode == "count" else path)
            lines += [f"{path}:{number}:{line}" for number, line in hits]
    found = lines if mode == "content" else files
    most = int(arguments.get("head_limit") or MOST_FOUND)
    return cut("\n".join(found[:most])) or "No matches found"


def walk(base: str) -> Iterator[str]:
    """Yield the paths of the files below a folder, or the path itself if it is a file."""
    if Path(base).is_file():
        yield base
        return
    for folder, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and path.stat().st_size < 1_000_000:
                yield str(path)


# OpenHands


def openhands_bash(arguments: Values, state: Values) -> str:
    """Run a command and return its output, working directory and exit code as one text.

    Raises CommandFailed on a timeout or a non-zero exit code.
    """
    seconds = min(float(arguments.get("timeout") or 30), state["seconds"])
    output, code, state["cwd"] = shell(wanted(arguments, "command"), state["cwd"], seconds)
    folder = f"[Current working directory: {state['cwd']}]"
    text = cut(output.rstrip("\n"))
    if code is None:
        said = f"[The command timed out after {seconds:g} seconds.]"
        raise CommandFailed(
            f"{text}\n{said}\n{folder}\n[Command finished with exit code -1]".lstrip("\n"), "timeout"
        )
    text = f"{text}\n{folder}\n[Command finished with exit code {code}]".lstrip("\n")
    if code:
        raise CommandFailed(text, "exit_code")
    return text


def openhands_editor(arguments: Values, state: Values) -> str:
    """View, create or edit a file and return OpenHands' message. Raises ToolError if it cannot."""
    command, path = wanted(arguments, "command"), wanted(arguments, "path")
    if command == "view":
        return openhands_view(arguments, path)
    if command == "create":
        if Path(path).exists():
            raise ToolError(
                f"ERROR:\nFile already exists at: {path}. Cannot overwrite files using command `create`."
            )
        write_text(path, wanted(arguments, "file_text"))
        return f"File created successfully at: {path}"
    text = read_text(path)
    backup = state["backups"]
    if command == "str_replace":
        old, new = wanted(arguments, "old_str"), arguments.get("new_str") or ""
        count = text.count(old) if old else 0
        if count != 1:
            why = "did not appear verbatim in" if not count else f"appears {count} times in"
            raise ToolError(f"ERROR:\nNo replacement was performed, old_str `{old}` {why} {path}.")
        line, changed = text[: text.index(old)].count("\n"), text.replace(old, new)
    elif command == "insert":
        line, new = wanted(arguments, "insert_line", int), wanted(arguments, "new_str")
        lines = text.splitlines(keepends=True)
        if not 0 <= line <= len(lines):
            raise ToolError(
                f"ERROR:\nInvalid `insert_line` parameter: {line}. It should be within [0, {len(lines)}]"
            )
        changed = "".join([*lines[:line], new if new.endswith("\n") else new + "\n", *lines[line:]])
    elif command == "undo_edit":
        if path not in backup:
            raise ToolError(f"ERROR:\nNo edit history found for {path}.")
        write_text(path, backup.pop(path))
        return f"Last edit to {path} undone successfully."
    else:
        raise ToolError(f"ERROR:\nUnrecognized command {command}.")
    backup[path] = text
    write_text(path, changed)
    part = changed.splitlines()[max(0, line - 4) : line + new.count("\n") + 5]
    said = f"The file {path} has been edited. Here's the result of running `cat -n` on a snippet of {path}:"
    return (
        f"{said}\n{shown(part, max(0, line - 4) + 1)}\nReview the changes and make sure they are as expected."
    )


def openhands_view(arguments: Values, path: str) -> str:
    """Return the numbered lines of a file, or the paths in a folder, two levels deep."""
    if Path(path).is_dir():
        found = sorted(str(each) for each in Path(path).glob("*") if not each.name.startswith("."))
        deeper = sorted(str(each) for each in Path(path).glob("*/*") if not each.name.startswith("."))
        listed = "\n".join(sorted({path, *found, *deeper}))
        said = f"Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return f"{said}\n{listed}"
    lines, chosen = read_text(path).splitlines(), arguments.get("view_range") or [1, -1]
    first, last = int(chosen[0]), int(chosen[1])
    last = len(lines) if last == -1 else last
    if not 1 <= first <= max(1, len(lines)) or last < first:
        raise ToolError(f"ERROR:\nInvalid `view_range` parameter: {chosen}. The file has {len(lines)} lines.")
    numbered = shown(lines[first - 1 : last], first)
    return f"Here's the result of running `cat -n` on {path}:\n{cut(numbered)}"


def said(arguments: Values, state: Values) -> str:
    """Return the acknowledgement of a `think` or `finish` call, which does nothing."""
    return "Your thought has been logged."


TOOLS = {
    "Bash": claude_bash,
    "Read": claude_read,
    "Write": claude_write,
    "Edit": claude_edit,
    "Glob": claude_glob,
    "Grep": claude_grep,
    "execute_bash": openhands_bash,
    "str_replace_editor": openhands_editor,
    "think": said,
    "finish": said,
}


def main() -> None:
    """Read a request from stdin, execute it, write the answer after its marker."""
    request = json.loads(sys.stdin.read())
    state = request["state"]
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    answer: Values = {"failed": False, "kind": None}
    try:
        answer["text"] = TOOLS[request["tool"]](request["arguments"], state)
    except ToolError as error:
        answer |= {"text": str(error), "failed": True, "kind": "tool_error"}
    except CommandFailed as error:
        answer |= {"text": error.text, "failed": True, "kind": error.kind}
    except (TypeError, ValueError, OSError) as error:
        answer |= {"text": f"InputValidationError: {error}", "failed": True, "kind": "tool_error"}
    channel.write(f"\n{request['marker']}{json.dumps({**answer, 'state': state})}\n")
    channel.flush()


if __name__ == "__main__":
    main()
