"""Tasks that the tests of this folder share."""

from pathlib import Path

import orchard
import pytest
from letters import make_letters_task

from tracemill.environments.task import Task


@pytest.fixture(scope="session")
def orchard_tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    """Four tasks of the library in `tests/data/orchard`: a function, a class, a module, a group."""
    made, _ = orchard.tasks_of_orchard(tmp_path_factory.mktemp("tasks"), 8)
    kinds = ("function", "class", "module", "group")
    return [next(task for task in made if task.difficulty.kind == kind) for kind in kinds]


@pytest.fixture(scope="session")
def letters_task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """The task to write `to_letters` again, from the library in `tests/data/letters`."""
    return make_letters_task(tmp_path_factory.mktemp("letters"))


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    """A folder that users of sandboxes may enter."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return tmp_path
