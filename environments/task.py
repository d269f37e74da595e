"""A task on disk, in Harbor's format, and what tracemill knows of it.

task.toml            limits, and under [metadata.tracemill] origin, deleted symbols, difficulty, the exam
instruction.md       what the agent is asked
environment/         Dockerfile and `repository/`, the tree the agent works in
tests/               test.sh, the right, the wrong and the blank tests, the verifier
solution/            solve.sh and the original files
"""

import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tracemill.environments.harbor.task_files import write_harbor_files
from tracemill.environments.sandbox.python_runtime import make_readable
from tracemill.environments.verdict.judge import BlankTests, TaskTests, digest_of
from tracemill.records.errors import EnvironmentTaskError

VERSION = 7
_PARTIAL = ".partial-"
"""Prefix of the folder of a task that is being written."""


@dataclass(frozen=True)
class Origin:
    """The origin of a repository."""

    name: str
    version: str = ""
    archive: str = ""
    licence: str = "unknown"


@dataclass(frozen=True)
class Difficulty:
    """Size of a deleted feature; `callers` are the tests that call it.

    `untested` names its statements, as `file:line` of the original, that no test of the repository runs: a
    fault there costs no reward.
    """

    kind: str
    functions: int
    files: int
    lines: int
    callers: int
    untested: Sequence[str] = ()


@dataclass(frozen=True)
class Task:
    """A task: its folder, its texts by level of detail, and its tests."""

    folder: Path
    name: str
    origin: Origin
    texts: Mapping[str, str]
    exam: TaskTests
    packages: tuple[str, ...]
    roots: tuple[str, ...]
    deleted: tuple[str, ...]
    difficulty: Difficulty
    image: str = ""
    """Image of a container that its tests need; empty if any Python will do."""

    @property
    def repository(self) -> Path:
        """Return the tree that the agent works in, with the feature deleted."""
        return self.folder / "environment" / "repository"

    @property
    def original(self) -> Path:
        """Return the folder of the original files."""
        return self.folder / "solution" / "files"

    @classmethod
    def write(
        cls,
        folder: Path,
        *,
        name: str,
        origin: Origin,
        texts: Mapping[str, str],
        repository: Path,
        original: Mapping[str, Path],
        exam: TaskTests,
        packages: Sequence[str],
        roots: Sequence[str],
        deleted: Sequence[str],
        difficulty: Difficulty,
        image: str = "",
    ) -> Self:
        """Write a task to a new folder, at once when it is whole, and return it."""
        if folder.exists():
            raise EnvironmentTaskError(
                f"{folder} exists already", "a new folder", "choose another output folder"
            )
        partial = folder.with_name(f"{_PARTIAL}{folder.name}")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(repository, partial / "environment" / "repository")
        shutil.copytree(exam.tests, partial / "tests" / "right")
        shutil.copytree(exam.wrong_tests, partial / "tests" / "wrong")
        shutil.copytree(exam.blank.tests, partial / "tests" / "blank")
        for file, source in original.items():
            target = partial / "solution" / "files" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        known = {
            "files": exam.files,
            "fail_to_pass": exam.fail_to_pass,
            "pass_to_pass": exam.pass_to_pass,
            "witnesses": exam.witnesses,
            "canaries": exam.canaries,
            "digest": digest_of(*exam.folders),
            "seconds": round(exam.seconds, 2),
            "blank": exam.blank.expected,
            "groups": exam.blank.groups,
            "unguessed": exam.blank.unguessed,
            "roots": [*roots],
            "packages": [*packages],
        }
        (partial / "tests" / "exam.json").write_text(json.dumps(known, indent=1), encoding="utf-8")
        about = {
            "version": VERSION,
            "origin": asdict(origin),
            "deleted": [*deleted],
            "difficulty": asdict(difficulty),
            "image": image,
            "texts": dict(texts),
        }
        write_harbor_files(partial, name, texts["detailed"], about, known)
        return cls.read(make_readable(partial).rename(folder))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a task. Raises EnvironmentTaskError if the folder is not a task, or its tests were changed."""
        try:
            settings = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
            about: dict[str, Any] = settings["metadata"]["tracemill"]
            known = json.loads((folder / "tests" / "exam.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError) as error:
            raise EnvironmentTaskError(
                f"{folder} is not a task ({type(error).__name__})", "a folder that `tracemill env make` wrote"
            ) from None
        if about.get("version") != VERSION:
            raise EnvironmentTaskError(
                f"{folder} is a task of version {about.get('version')}, whose verdict can be forged",
                f"version {VERSION}",
                "make it again with `tracemill env make`",
            )
        right, wrong = folder / "tests" / "right", folder / "tests" / "wrong"
        exam = TaskTests(
            right,
            wrong,
            tuple(known["files"]),
            tuple(known["fail_to_pass"]),
            tuple(known["pass_to_pass"]),
            tuple(known["canaries"]),
            known["digest"],
            known["seconds"],
            BlankTests(
                folder / "tests" / "blank",
                tuple(map(tuple, known["groups"])),
                known["blank"],
                tuple(known["unguessed"]),
            ),
            tuple(known["witnesses"]),
        )
        if digest_of(*exam.folders) != exam.digest:
            raise EnvironmentTaskError(
                f"the tests of {folder} were changed",
                "the tests that `tracemill env make` wrote",
                "restore them, or make the task again",
            )
        return cls(
            folder,
            settings["task"]["name"].rpartition("/")[2],
            Origin(**about["origin"]),
            about["texts"],
            exam,
            tuple(known["packages"]),
            tuple(known["roots"]),
            tuple(about["deleted"]),
            Difficulty(**about["difficulty"]),
            about["image"],
        )


def read_tasks(folder: Path) -> list[Task]:
    """Read the tasks below a folder, or the task in it. Raises EnvironmentTaskError if there is none."""
    found = [folder] if (folder / "task.toml").exists() else sorted(folder.glob("*/task.toml"))
    found = [path for path in found if not path.parent.name.startswith(_PARTIAL)]
    if not found:
        raise EnvironmentTaskError(f"{folder} holds no task", "folders that `tracemill env make` wrote")
    return [Task.read(path.parent if path.name == "task.toml" else path) for path in found]
