"""Which code made something: the version of tracemill and, in a git checkout, its commit."""

from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from tracemill.records.version import __version__

_SHOWN = 12  # characters of a commit
_ROOT = Path(str(files("tracemill"))).parent


def code_version(root: Path = _ROOT) -> dict[str, str | None]:
    """Version and commit of the code below `root`; None for the commit where that is no checkout.

    Read off the files of git, which takes a hundredth of the time that starting it takes:
    https://git-scm.com/docs/gitrepository-layout
    """
    commit = None
    with suppress(OSError, ValueError):
        commit = _commit(root / ".git")
    return {"tracemill": __version__, "commit": commit}


def _commit(git: Path) -> str | None:
    """The commit that is checked out. Raises OSError and ValueError where the files are not as expected."""
    if git.is_file():  # of a worktree or a submodule
        git = git.parent / _text(git).removeprefix("gitdir: ")
    head = _text(git / "HEAD")
    if not head.startswith("ref: "):
        return head[:_SHOWN]
    name = head.removeprefix("ref: ")
    shared = git / "commondir"
    common = git / _text(shared) if shared.is_file() else git
    if (common / name).is_file():
        return _text(common / name)[:_SHOWN]
    packed = (line.split(" ") for line in _text(common / "packed-refs").splitlines())
    return next((commit[:_SHOWN] for commit, *ref in packed if ref == [name]), None)


def _text(path: Path) -> str:
    return path.read_text("ascii").strip()
