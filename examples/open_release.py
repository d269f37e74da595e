"""Open the newest release under a folder, the way anybody would, and show one pair of it.

python examples/open_release.py <workspace>/releases/<name>
"""

import sys
from pathlib import Path
from textwrap import indent, shorten
from typing import Any

from datasets import disable_progress_bars, load_dataset

MARKS = {"old_string": "-", "old_str": "-", "new_string": "+", "new_str": "+"}
"""How the lines of an edit begin, by the name of the argument they are in."""


def main() -> None:
    """Load config `dpo` of the newest version and print its size and one pair."""
    disable_progress_bars()
    folder = sorted(path for path in Path(sys.argv[1]).iterdir() if (path / "README.md").exists())[-1]
    rows: Any = load_dataset(str(folder), "dpo", split="train")
    row = max(rows, key=how_telling)
    request = next(message["content"] for message in row["prompt"] if message["role"] == "user")
    print(f"load_dataset({str(folder)!r}, 'dpo', split='train'): {len(rows)} rows, such as\n")
    print(f"asked     {shorten(request, 100, placeholder=' ...')}")
    print(f"so far    {len(row['prompt'])} messages, {len(row['tools'])} tools")
    for side in ("chosen", "rejected"):
        print(f"\n{side}\n{indent(side_text(row[side][-1]), '  ')}")


def how_telling(row: dict[str, Any]) -> tuple[bool, bool, int]:
    """Put two edits before other pairs, teachers' pairs before self-repairs, short ones before long ones."""
    both_edit = row["chosen_operation"] == row["rejected_operation"] == "edit"
    return both_edit, row["label_source"] == "teachers", -row["chosen_chars"] - row["rejected_chars"]


def side_text(message: dict[str, Any]) -> str:
    """Return what a side says and does; edits as lines that go and come."""
    lines = [shorten(message["content"], 100, placeholder=" ...")] if message["content"] else []
    for call in message["tool_calls"] or []:
        given = {name: str(value) for name, value in call["function"]["arguments"].items() if value}
        plain = [value for name, value in given.items() if name not in MARKS]
        lines.append(f"{call['function']['name']} {' '.join(plain)}")
        lines += [
            f"  {mark} {line}"
            for name, mark in MARKS.items()
            for line in given.get(name, "").rstrip("\n").split("\n")
            if name in given
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
