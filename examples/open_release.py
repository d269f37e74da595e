"""Open the newest release under a folder, the way anybody would, and show one row of it.

python examples/open_release.py <workspace>/releases/<name>
"""

import sys
from pathlib import Path

from datasets import disable_progress_bars, load_dataset


def main() -> None:
    """Load config `dpo` of the newest version and print its size and one pair."""
    disable_progress_bars()
    folder = sorted(path for path in Path(sys.argv[1]).iterdir() if (path / "README.md").exists())[-1]
    rows = load_dataset(str(folder), "dpo", split="train")
    row = next((r for r in rows if r["label_source"] == "teachers"), rows[0])
    print(f"load_dataset({str(folder)!r}, 'dpo'): {len(rows)} rows")
    print(f"  step      {row['step_id']} ({len(row['prompt'])} messages, {len(row['tools'])} tools)")
    for side in ("chosen", "rejected"):
        message = row[side][-1]
        calls = [f"{c['function']['name']} {c['function']['arguments']}" for c in message["tool_calls"] or []]
        print(f"  {side:9} {(' | '.join(calls) or message['content'])[:100]}")


if __name__ == "__main__":
    main()
