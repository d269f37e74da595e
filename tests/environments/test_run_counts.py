"""What is made of many runs of the same tasks: weights, a dataset of tasks, single-step tasks, publishing."""

import json
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orchard
import pytest
from hub_releases import OF_THE_HUB, empty_workspace, log_in
from hub_stub import Hub

from tracemill.environments.episodes.policies import oracle
from tracemill.environments.episodes.run_counts import RunCounts, add_runs
from tracemill.environments.episodes.run_episode import Episode, Policy, run_episode
from tracemill.environments.episodes.single_steps import single_steps
from tracemill.environments.episodes.task_rows import task_rows, write_rows, write_task_rows
from tracemill.environments.task import Task, read_tasks
from tracemill.flows.publish.publish_tasks import publish_tasks
from tracemill.records.errors import PrivacyError, ReleaseError
from tracemill.records.message import Message, ToolCall, ToolSpec

pytestmark = OF_THE_HUB


def looking(command: str, restore: Policy | None) -> Policy:
    """A policy that runs a command first and then restores the original, or gives up."""

    def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        if len(messages) == 2:
            return Message("assistant", "", (ToolCall("call_x", "Bash", json.dumps({"command": command})),))
        if restore is None:
            return Message("assistant", "I give up.")
        return restore([*messages[:2], *messages[4:]], tools)

    return answer


@pytest.fixture(scope="module")
def tasks(orchard_tasks: list[Task], tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    """Copies of two tasks, which runs may be counted in."""
    folder = tmp_path_factory.mktemp("counted")
    for task in orchard_tasks[:2]:
        shutil.copytree(task.folder, folder / task.name)
    return read_tasks(folder)


@pytest.fixture(scope="module")
def episodes(tasks: list[Task]) -> list[Episode]:
    """Four runs of the first task: two that solve it, one that gives up, one hack; one of the second."""
    first, second = tasks
    policies = [
        looking("ls", oracle(first)),
        oracle(first),
        looking("ls", None),
        looking("cat /proc/self/environ", oracle(first)),
    ]
    box = orchard.sandbox()
    runs = [run_episode(first, each, box, model="m/one", number=n) for n, each in enumerate(policies)]
    return [*runs, run_episode(second, looking("ls", None), box, model="m/one")]


def test_runs_are_counted_and_weigh_tasks(tasks: list[Task], episodes: list[Episode]) -> None:
    before = (tasks[0].folder / "task.toml").read_text()
    assert "sample_weight" not in before
    assert task_rows(tasks)["sample_weight"].to_pylist() == [None, None]
    counts = add_runs(episodes[:2])
    assert counts == {tasks[0].name: RunCounts(2, 2, 0)}
    counts = add_runs([*episodes[2:4], replace(episodes[4], model="m/two")])
    assert counts == {tasks[0].name: RunCounts(4, 2, 1), tasks[1].name: RunCounts(1, 0, 0)}
    settings = tomllib.loads((tasks[0].folder / "task.toml").read_text())
    assert settings["metadata"]["sample_weight"] == 0.25
    assert settings["metadata"]["tracemill"]["runs"] == {"m/one": {"attempts": 4, "solved": 2, "hacks": 1}}
    assert add_runs(episodes[:4]) == {tasks[0].name: RunCounts(4, 2, 1)}
    for name in ("counted", "runs"):
        del settings["metadata"]["tracemill"][name]
    del settings["metadata"]["sample_weight"]
    assert settings == tomllib.loads(before)
    assert read_tasks(tasks[0].folder) == [tasks[0]]
    table = task_rows(tasks)
    assert table["sample_weight"].to_pylist() == [0.25, None]
    assert table["attempts"].to_pylist() == [4, 1]
    assert table["hacks"].to_pylist() == [1, 0]


@pytest.mark.parametrize(
    ("attempts", "solved", "weight"),
    [(0, 0, None), (1, 1, None), (2, 0, 0.0), (2, 1, 0.25), (4, 1, 0.1875), (10, 10, 0.0)],
)
def test_a_weight_is_p_times_1_minus_p(attempts: int, solved: int, weight: float | None) -> None:
    assert RunCounts(attempts, solved).sample_weight == weight


def test_a_dataset_of_tasks_opens_as_trl_takes_it(tasks: list[Task], tmp_path: Path) -> None:
    from datasets import load_dataset

    write_task_rows(tasks, tmp_path / "tasks.parquet")
    file, cache = str(tmp_path / "tasks.parquet"), str(tmp_path)
    rows = load_dataset("parquet", data_files=file, split="train", cache_dir=cache)
    assert rows["task"][:] == [task.name for task in tasks]
    assert rows[0]["prompt"][1] == {"role": "user", "content": tasks[0].texts["detailed"]}
    assert rows[0]["licence"] == "MIT"
    assert rows[0]["bytes"] > 30_000


def test_single_steps_hold_actions_with_their_values(episodes: list[Episode], tmp_path: Path) -> None:
    from datasets import load_dataset

    rows = [*single_steps(episodes)]
    first = rows[0]
    assert (first["step"], len(first["messages"]), len(first["tools"])) == (0, 2, 6)
    said = [
        (action["tool_calls"][0]["name"], action["value"], action["episodes"], action["accepted"])
        for action in first["actions"]
    ]
    assert said == [("Write", 1.0, 1, True), ("Bash", 0.5, 2, False), ("Bash", 0.0, 1, False)]
    second = rows[1]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert [(action["value"], action["accepted"]) for action in second["actions"]] == [
        (1.0, True),
        (0.0, False),
    ]
    assert sum(len(row["actions"]) for row in rows) == 11
    count = write_rows(rows, tmp_path / "steps.jsonl")
    file, cache = str(tmp_path / "steps.jsonl"), str(tmp_path)
    opened = load_dataset("json", data_files=file, split="train", cache_dir=cache)
    assert (count, opened.num_rows) == (len(rows), len(rows))
    assert opened[0]["actions"][0]["tool_calls"][0]["name"] == "Write"


def test_tasks_are_published_as_a_dataset(
    hub: Hub, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(monkeypatch)
    settings, folder = empty_workspace(tmp_path), tasks[0].folder.parent
    cache = tasks[0].folder / "tests" / "__pycache__"
    cache.mkdir()
    (cache / "verify.cpython-311.pyc").write_bytes(b"\0\1\2")
    lines = [*publish_tasks(settings, folder, "maker/tasks")]
    assert lines[0].endswith("nothing found (own rules r27, kingfisher 2.14.0)")
    assert lines[1:] == [
        f"created private dataset {hub.url}/datasets/maker/tasks",
        f"maker/tasks: 2 tasks, commit {hub.repos['maker/tasks'].refs['main'][:12]}",
    ]
    files = hub.repos["maker/tasks"].commits[hub.repos["maker/tasks"].refs["main"]]
    card = files["README.md"].decode()
    assert "| orchard | MIT | 2 |" in card
    assert {"data/train.parquet", f"tasks/{tasks[0].name}/task.toml"} <= files.keys()
    assert not [name for name in files if "__pycache__" in name]
    kept = tmp_path / "one"
    shutil.copytree(tasks[1].folder, kept / tasks[1].name)
    [*publish_tasks(settings, kept, "maker/tasks")]
    files = hub.repos["maker/tasks"].commits[hub.repos["maker/tasks"].refs["main"]]
    assert {name.split("/")[1] for name in files if name.startswith("tasks/")} == {tasks[1].name}
    secret = kept / tasks[1].name / "environment" / "repository" / "settings.py"
    secret.write_text('KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"\n')
    commits = len(hub.repos["maker/tasks"].titles)
    with pytest.raises(PrivacyError, match="the release is refused: "):
        [*publish_tasks(settings, kept, "maker/tasks")]
    hub.repos["maker/tasks"].private = False
    with pytest.raises(ReleaseError, match="maker/tasks is public; add --public"):
        [*publish_tasks(settings, kept, "maker/tasks")]
    assert len(hub.repos["maker/tasks"].titles) == commits
