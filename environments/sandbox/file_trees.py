"""Handle folders that untrusted commands wrote in: links, pipes, deep nesting and odd modes are expected."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


def walk_files(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield every entry below a folder except folders, with its relative path; links are not followed.

    Paths longer than the system allows are skipped.
    """
    left = [("", str(folder))]
    while left:
        within, place = left.pop()
        try:
            with os.scandir(place) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            name = f"{within}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                left.append((f"{name}/", entry.path))
            else:
                yield name, entry


def copy_regular_files(source: Path, target: Path) -> None:
    """Copy the regular files below a folder, without bytecode; unreadable files are skipped."""
    target.mkdir(parents=True, exist_ok=True)
    for name, entry in walk_files(source):
        if not entry.is_file(follow_symlinks=False) or "__pycache__" in name or name.endswith(".pyc"):
            continue
        copied = target / name
        try:
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry.path, copied, follow_symlinks=False)
            copied.chmod(0o755 if entry.stat(follow_symlinks=False).st_mode & 0o100 else 0o644)
        except OSError:
            continue


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder with its links as links, without pipes, sockets and devices."""

    def special(folder: str, names: list[str]) -> list[str]:
        paths = [Path(folder, name) for name in names]
        return [each.name for each in paths if not (each.is_symlink() or each.is_file() or each.is_dir())]

    shutil.copytree(source, target, symlinks=True, ignore=special)


def remove_tree(folder: Path) -> None:
    """Remove a folder of any depth; a missing one is no error."""
    subprocess.run(["rm", "-rf", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)
