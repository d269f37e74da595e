"""The Python that commands in a sandbox use: this interpreter, its standard library, chosen packages.

The folder of installed packages is not mounted, so that no second copy of a package under test is in reach.
Of each package that is asked for, the files of its distribution alone are.
"""

import compileall
import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from tracemill.environments.sandbox.sandbox import Mount
from tracemill.records.errors import EnvironmentTaskError

PACKAGES = "/packages"
"""Where chosen packages are inside."""
PYTHON = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
BARE = ("-I", "-S")
"""Options of a Python that knows neither its environment nor what is installed beside it."""
TEST_PACKAGES = ("pytest",)
_SYSTEM_LIBRARIES = ("/usr/lib", "/usr/local/lib", "/usr/share")
_PACKAGE_FOLDERS = {"_bundled", "_vendor", "dist-packages", "python-wheels", "site-packages", "third_party"}
_DEPTH = 6
"""Levels below a library folder at which such folders are looked for."""
_LOCK = threading.Lock()
_SHARED: dict[tuple[str, ...], tempfile.TemporaryDirectory[str]] = {}
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def interpreter_mounts() -> list[Mount]:
    """Return mounts of the interpreter; none if it is part of the system."""
    prefix = Path(sys.base_prefix).resolve()
    return [] if prefix == Path("/usr") else [Mount(prefix, str(prefix))]


@cache
def hidden_folders() -> tuple[str, ...]:
    """Return the folders to hide in the sandbox: installed packages, also those that other programs bring."""
    python = f"{Path(sys.base_prefix).resolve()}/lib/python{sys.version_info.major}.{sys.version_info.minor}"
    found: set[str] = set()
    for root in (*_SYSTEM_LIBRARIES, python):
        for folder, folders, _ in os.walk(root):
            found |= {f"{folder}/{each}" for each in folders if each in _PACKAGE_FOLDERS}
            is_deep = folder.count("/") - root.count("/") >= _DEPTH
            folders[:] = [] if is_deep else [each for each in folders if each not in _PACKAGE_FOLDERS]
    return tuple(sorted(found))


def make_readable(folder: Path) -> Path:
    """Make a folder readable for every user, whatever the umask of this process; return it."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    return folder


def shared_packages(names: Sequence[str]) -> Path:
    """Return a folder of distributions and of their requirements, made and compiled once for this process.

    It is mounted read-only. Raises EnvironmentTaskError for one that is not installed here.
    """
    with _LOCK:
        key = tuple(sorted(names))
        if key not in _SHARED:
            made = tempfile.TemporaryDirectory(prefix="tracemill-packages-")
            folder = Path(made.name)
            copy_packages(names, folder)
            compileall.compile_dir(folder, quiet=2)
            make_readable(folder)
            _SHARED[key] = made
        return Path(_SHARED[key].name)


def copy_packages(names: Iterable[str], folder: Path) -> None:
    """Copy the files of distributions and of their requirements into a folder.

    Raises EnvironmentTaskError for one that is not installed here.
    """
    for distribution in _closure([*names]):
        for file in distribution.files or ():
            if ".." in file.parts or file.suffix == ".pyc":
                continue
            source, target = Path(str(distribution.locate_file(file))), folder / file
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    make_readable(folder)


def _closure(names: Sequence[str]) -> list[importlib.metadata.Distribution]:
    found: dict[str, importlib.metadata.Distribution] = {}
    left = [*names]
    while left:
        name = left.pop()
        if name.lower() in found:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name not in names:
                continue  # a requirement of another platform or version
            raise EnvironmentTaskError(
                f"package {name} is not installed", "it, for the tests of a task", f"pip install {name}"
            ) from None
        found[name.lower()] = distribution
        for requirement in distribution.requires or ():
            matched = _NAME.match(requirement)
            if matched and "extra ==" not in requirement:
                left.append(matched.group())
    return [*found.values()]
