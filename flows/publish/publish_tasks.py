"""Publish tasks that verify themselves as a dataset of the Hub: their folders, a table of them, a card."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tracemill.data_cards.hub.hub_errors import PATIENCE, translate_hub_errors
from tracemill.data_cards.hub.push import HubPusher
from tracemill.data_cards.hub.repo_state import HubRepo
from tracemill.environments.episodes.task_rows import write_task_rows
from tracemill.environments.task import Task, read_tasks
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.publish.publish_gate import make_gate
from tracemill.flows.publish.publish_run import PublishOptions, open_pusher, require_second_opinion
from tracemill.records.errors import ReleaseError
from tracemill.records.storage.workspace import Workspace

TABLE = "data/train.parquet"
_CARD = """\
---
license: other
license_name: see-the-column-licence
task_categories:
- text-generation
tags:
- code
- reinforcement-learning
- feature-deletion
- harbor
size_categories:
- {size}
configs:
- config_name: default
  data_files:
  - split: train
    path: {table}
---

# Coding tasks that verify themselves

{count} tasks in [Harbor's format](https://www.harborframework.com/docs/tasks), made of {packages} by deleting
features that their tests cover. `{table}` has a row for each task; the folder in its column `path` has
everything that a run needs: the repository without the feature, the tests and the solution.

**Do not train on the folders `tests` and `solution`.** They decide the reward.

| package | licence | tasks |
|---|---|---|
{rows}

Licences are those of the packages, as their metadata say them.

| | smallest | median | largest |
|---|---|---|---|
| seconds of its tests | {seconds} |
| kilobytes on disk | {kilobytes} |
| deleted lines | {lines} |

Runs counted: {attempts}, of which {solved} solved their task and {hacks} were hacks. `sample_weight` is
p (1 - p) of the solved share of a task with two runs or more: {weighed} tasks have one.

```python
from datasets import load_dataset

tasks = load_dataset("{repo_id}", split="train")
```

Made with tracemill. `hf download {repo_id} --repo-type dataset --local-dir dataset`, then
`tracemill env verify dataset/tasks`, checks that every task gives 0 without its feature and 1 with it.
"""


def publish_tasks(settings: RunSettings, folder: Path, repo_id: str, public: bool = False) -> Iterator[str]:
    """Publish the tasks of a folder; yield lines to print.

    Raises ReleaseError and PrivacyError before anything is uploaded: no token or rights, a public dataset
    without `public`, findings of the gate.
    """
    tasks = read_tasks(folder)
    require_second_opinion()
    pusher = open_pusher(PublishOptions(repo_id, public))
    repo = pusher.state()
    if repo is not None and not repo.private and not public:
        raise ReleaseError(f"{repo_id} is public", do="add --public, or make the repository private")
    if repo is not None and repo.manifest is not None:
        raise ReleaseError(f"{repo_id} holds releases of pairs", "a dataset of its own for tasks")
    with tempfile.TemporaryDirectory(prefix="tracemill-publish-") as name:
        staged = Path(name)
        _stage(tasks, staged, repo_id)
        gate = make_gate(settings, Workspace.open(settings.workspace))
        yield from gate.judge(staged).lines()
        commit = _push(pusher, repo, staged, public, len(tasks))
    if repo is None:
        visibility = "public" if public else "private"
        yield f"created {visibility} dataset {pusher.api.endpoint}/datasets/{repo_id}"
    yield f"{repo_id}: {len(tasks)} tasks, commit {commit[:12]}"


def _stage(tasks: Sequence[Task], folder: Path, repo_id: str) -> None:
    """Copy the files to publish into a staging folder, without caches of whoever ran their verifier."""
    for task in tasks:
        shutil.copytree(
            task.folder, folder / "tasks" / task.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    rows = write_task_rows(tasks, folder / TABLE).to_pylist()
    (folder / "README.md").write_text(_card(rows, repo_id), encoding="utf-8")


def _card(rows: Sequence[dict[str, Any]], repo_id: str) -> str:
    origins = Counter((f"{row['origin']} {row['origin_version']}".strip(), row["licence"]) for row in rows)
    return _CARD.format(
        size="n<1K" if len(rows) < 1000 else "1K<n<10K",
        table=TABLE,
        count=len(rows),
        packages=f"{len(origins)} package{'s' if len(origins) != 1 else ''}",
        rows="\n".join(
            f"| {name} | {licence} | {count} |" for (name, licence), count in sorted(origins.items())
        ),
        seconds=_spread([row["test_seconds"] for row in rows], 1),
        kilobytes=_spread([row["bytes"] / 1000 for row in rows], 0),
        lines=_spread([row["lines"] for row in rows], 0),
        attempts=sum(row["attempts"] for row in rows),
        solved=sum(row["solved"] for row in rows),
        hacks=sum(row["hacks"] for row in rows),
        weighed=sum(row["sample_weight"] is not None for row in rows),
        repo_id=repo_id,
    )


def _spread(values: Sequence[float], digits: int) -> str:
    ordered = sorted(values)
    chosen = (ordered[0], ordered[len(ordered) // 2], ordered[-1])
    return " | ".join(f"{value:.{digits}f}" for value in chosen)


def _push(pusher: HubPusher, repo: HubRepo | None, folder: Path, public: bool, count: int) -> str:
    """Commit the staged folder in place of the dataset's content; return the commit."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    PATIENCE.request(
        f"make {pusher.repo_id}",
        lambda: pusher.api.create_repo(
            pusher.repo_id, repo_type="dataset", private=not public, exist_ok=True
        ),
    )
    pusher.prepare()
    files = {
        path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()
    }
    operations: list[Any] = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
    for name in repo.files if repo else ():
        if name not in files and name.startswith(("tasks/", "data/")):
            operations.append(CommitOperationDelete(name, is_folder=False))
    info = translate_hub_errors(
        f"commit to {pusher.repo_id}",
        lambda: pusher.api.create_commit(
            pusher.repo_id,
            operations,
            commit_message=f"{count} tasks",
            repo_type="dataset",
            parent_commit=repo.head if repo else None,
        ),
    )
    return str(info.oid)
