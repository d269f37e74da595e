"""`tracemill env` on the command line: make tasks, run episodes, verify."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracemill.cli.options import AllowFinding, WorkspaceOption
from tracemill.flows.runtime.interrupts import ReportedInterrupt
from tracemill.records.printable import printable, printable_count

if TYPE_CHECKING:
    from tracemill.environments.episodes.episode_folder import RecordedEpisode
    from tracemill.environments.episodes.workspace import EpisodeJudgement
    from tracemill.environments.feature_deletion.make_tasks import TaskReport
    from tracemill.environments.task import Task

env_app = typer.Typer(help="Make coding tasks, run agents on them, verify them.", no_args_is_help=True)
Sandbox = Annotated[
    str, typer.Option(help="Sandbox: auto, bubblewrap, docker[:IMAGE], podman[:IMAGE] or unsafe-process.")
]
Tasks = Annotated[Path, typer.Argument(help="Folder of tasks, or one task.")]


@env_app.command()
def make(
    repository: Annotated[
        str | None, typer.Argument(help="Folder of a repository, or NAME==VERSION on PyPI.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the tasks.")] = Path("tasks"),
    most: Annotated[int, typer.Option(min=1, help="Maximum number of tasks.")] = 10,
    package: Annotated[list[str] | None, typer.Option(help="Installed package that its tests need.")] = None,
    restorations: Annotated[int, typer.Option(min=0, help="Fresh runs that the original must pass.")] = 10,
    faults: Annotated[
        int | None,
        typer.Option(min=0, help="Most faults planted in a feature; its tests must notice every one."),
    ] = None,
    licence: Annotated[str, typer.Option(help="Licence of a folder's code.")] = "unknown",
    seed: Annotated[int, typer.Option(help="Seed of the choice of features.")] = 0,
    rows: Annotated[
        Path | None, typer.Option(help="File of rows as in SWE-bench and SWE-Gym, instead of a repository.")
    ] = None,
    checkout: Annotated[
        list[str] | None,
        typer.Option(metavar="OWNER/NAME=FOLDER", help="Git checkout of a repository named in the rows."),
    ] = None,
    sandbox: Sandbox = "auto",
) -> None:
    """Delete features of a repository, or undo patches of rows, and write tasks to restore them."""
    import tempfile

    from tracemill.environments.feature_deletion.delete_features import LEAST_LINES, MOST_TESTS_SHARE
    from tracemill.environments.feature_deletion.fetch_sdist import fetch_sdist, is_requirement
    from tracemill.environments.feature_deletion.make_issue_tasks import make_issue_tasks
    from tracemill.environments.feature_deletion.make_tasks import TaskReport, make_tasks
    from tracemill.environments.feature_deletion.read_issue_rows import read_issue_rows
    from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
    from tracemill.environments.task import Origin
    from tracemill.flows.runtime.progress import say_start
    from tracemill.records.errors import EnvironmentTaskError

    if (repository is None) == (rows is None):
        raise EnvironmentTaskError("tasks are made of a repository or of --rows", "one of the two")
    if checkout and rows is None:
        raise EnvironmentTaskError("--checkout is for --rows", "rows that name the repository")
    report = TaskReport(
        tell=lambda name: say_start(f"trying {name}"),
        tell_refused=lambda name, why: typer.echo(f"no task  {printable(name)}: {printable(why)}"),
    )
    issues = [] if rows is None else [*read_issue_rows(rows)]
    is_made = "the tasks named above are made; another --out begins anew"
    with _reported(is_made), tempfile.TemporaryDirectory(prefix="tracemill-sdist-") as folder:
        chosen = choose_sandbox(sandbox)
        if rows is not None:
            made = make_issue_tasks(
                issues[:most],
                _checkouts(checkout or ()),
                out,
                chosen,
                packages=package or (),
                restorations=restorations,
                seed=seed,
                report=report,
            )
        else:
            assert repository is not None
            if is_requirement(repository):
                root, origin = fetch_sdist(repository, Path(folder))
            else:
                root = Path(repository)
                if not root.is_dir():
                    raise EnvironmentTaskError(f"{repository} is no folder", "a repository, or NAME==VERSION")
                origin = Origin(root.resolve().name, licence=licence)
            first = out / f"{origin.name}-001"
            if first.exists():
                raise EnvironmentTaskError(
                    f"{first} exists already", "a new folder", "choose another output folder"
                )
            made = make_tasks(
                root,
                origin,
                out,
                chosen,
                most=most,
                packages=package or (),
                restorations=restorations,
                faults=faults,
                seed=seed,
                report=report,
            )
        for task in made:
            _print_task(task)
    _print_report(report, "features" if rows is None else "rows")
    if len(issues) > most:
        typer.echo(f"  {printable_count(len(issues) - most, 'more row')} not tried: --most {most}")
    elif rows is None and report.made < most:
        few = f"fewer than --most {most}: {printable_count(report.tried, 'feature')} found"
        typer.echo(
            f"  {few}, of functions with at least {LEAST_LINES} lines that some tests call, "
            f"but no more than {MOST_TESTS_SHARE:.0%}"
        )


def _print_task(task: "Task") -> None:
    """Print a task's place, its size and how many tests judge it."""
    exam, size = task.exam, task.difficulty
    more = f", {len(exam.witnesses)} more lower the reward" if exam.witnesses else ""
    typer.echo(
        f"{task.folder}  {size.kind}, {size.functions} functions, {size.lines} lines, "
        f"{len(exam.fail_to_pass)} tests decide, {len(exam.blank.unguessed)} beyond a guess, "
        f"{len(exam.pass_to_pass)} guard{more}"
    )


def _print_report(report: "TaskReport", what: str) -> None:
    """Print how many tasks were made, why others were not, and the tests that do not count."""
    typer.echo(f"tasks made {report.made} of {report.tried} {what} tried")
    for reason, count in report.refused.most_common():
        typer.echo(f"  refused {count}  {printable(reason)}")
    if report.left_out:
        why = "they do not pass twice in the sandbox, or are slow"
        typer.echo(f"tests left out {report.left_out} of {report.tests}: {why}")


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Say of an interrupt what is done."""
    try:
        yield
    except KeyboardInterrupt:
        raise ReportedInterrupt(what) from None


def _checkouts(given: Sequence[str]) -> dict[str, Path]:
    """Return checkouts by the name of their repository."""
    from tracemill.records.errors import EnvironmentTaskError

    found = {}
    for each in given:
        name, equals, folder = each.partition("=")
        if not equals or not (Path(folder) / ".git").exists():
            raise EnvironmentTaskError(
                f"--checkout {each} is no checkout", "OWNER/NAME=FOLDER of a git checkout"
            )
        found[name] = Path(folder)
    return found


@env_app.command()
def verify(
    tasks: Tasks,
    repository: Annotated[Path | None, typer.Option(help="Candidate to judge, for a single task.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Fresh runs of each original.")] = 1,
    sandbox: Sandbox = "auto",
) -> None:
    """Check that tasks give 0 without and 1 with their feature, or judge a candidate."""
    from tracemill.environments.episodes.verify_task import judge_candidate, verify_task
    from tracemill.environments.episodes.workspace import EpisodeJudgement
    from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
    from tracemill.environments.task import read_tasks
    from tracemill.records.errors import EnvironmentTaskError

    found = read_tasks(tasks)
    if repository is not None and len(found) != 1:
        raise EnvironmentTaskError(
            f"{tasks} holds {len(found)} tasks",
            "a single task where --repository is given",
            "name the folder of one task",
        )
    wrong = 0
    with _reported("what is not named above was not judged"):
        chosen = choose_sandbox(sandbox)
        if repository is not None:
            task = found[0]
            judgement = EpisodeJudgement(*judge_candidate(task, repository, chosen))
            passed, tests = len(judgement.verdict.passed), len(task.exam.fail_to_pass)
            less = ", less counts:" if judgement.reward < passed / tests else ""
            typer.echo(f"reward {judgement.reward:.3f}  {passed} of {tests} pass{less}")
            _print_notes(judgement, task)
            return
        for task in found:
            rewards = verify_task(task, chosen, repeat)
            wrong += rewards.deleted != 0.0 or rewards.restored < 1.0
            typer.echo(f"{task.name}  deleted {rewards.deleted:.2f}  restored {rewards.restored:.2f}")
    typer.echo(f"tasks that hold {len(found) - wrong} of {len(found)}")
    if wrong:
        raise typer.Exit(1)


@env_app.command()
def run(
    tasks: Tasks,
    policy: Annotated[str, typer.Option(help="oracle, nothing, or MODULE:FUNCTION that makes a policy.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the sessions.")] = Path("episodes"),
    harness: Annotated[str, typer.Option(help="Tools and format: claude_code or openhands.")] = "claude_code",
    model: Annotated[str, typer.Option(help="Name of the model, for the sessions.")] = "unknown",
    at_once: Annotated[int, typer.Option(min=1, help="Episodes at a time.")] = 4,
    samples: Annotated[int, typer.Option(min=1, help="Episodes of each task.")] = 1,
    turns: Annotated[int, typer.Option(min=1, help="Maximum number of answers.")] = 50,
    level: Annotated[str, typer.Option(help="Text of a task: terse or detailed.")] = "detailed",
    weigh: Annotated[
        bool, typer.Option("--weigh", help="Count the runs in the tasks, and write their sample_weight.")
    ] = False,
    steps: Annotated[Path | None, typer.Option(help="JSON lines of single-step tasks to write.")] = None,
    sandbox: Sandbox = "auto",
) -> None:
    """Run a policy on tasks and write its episodes as sessions.

    Each is written as soon as it is finished. The same command again runs what is missing.
    """
    import threading

    from tracemill.environments.episodes.episode_folder import EpisodeFolder, run_key
    from tracemill.environments.episodes.policies import load_policy
    from tracemill.environments.episodes.run_counts import add_runs
    from tracemill.environments.episodes.run_episode import Episode, run_episodes, sample_numbers
    from tracemill.environments.episodes.single_steps import single_steps
    from tracemill.environments.episodes.task_rows import write_rows
    from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
    from tracemill.environments.task import read_tasks

    _check_choice("--harness", harness, ("claude_code", "openhands"))
    _check_choice("--level", level, ("terse", "detailed"))
    _check_output("--steps", steps)
    found = [task for task in read_tasks(tasks) for _ in range(samples)]
    arguments = {"policy": policy, "harness": harness, "model": model, "turns": turns, "level": level}
    numbers = sample_numbers(found)
    keys = [run_key(*each, **arguments) for each in zip(found, numbers, strict=True)]
    choose_sandbox(sandbox)
    folder, printing = EpisodeFolder(out), threading.Lock()
    kept = folder.finished(dict(zip(keys, found, strict=True)))
    if kept:
        typer.echo(f"{len(kept)} of {len(found)} episodes are in {out} already; another --out makes new ones")
    missing = [place for place, key in enumerate(keys) if key not in kept]

    def finished(episode: Episode) -> None:
        with printing:
            folder.add(episode, run_key(episode.task, episode.number, **arguments))
            hack = "  hack" if episode.hacked else ""
            typer.echo(f"{episode.task.name}  reward {episode.reward:.2f}{hack}  {episode.seconds:.1f} s")
            _print_notes(episode.judgement, episode.task)

    ran = run_episodes(
        [found[place] for place in missing],
        lambda task: load_policy(policy, task),
        lambda: choose_sandbox(sandbox),
        at_once=at_once,
        harness=harness,  # type: ignore[arg-type]
        model=model,
        most_turns=turns,
        level=level,
        numbers=[numbers[place] for place in missing],
        finished=finished,
    )
    new = dict(zip([keys[place] for place in missing], ran, strict=True))
    episodes = [new[key] if key in new else kept[key] for key in keys]
    solved, hacks = sum(each.reward == 1.0 for each in episodes), sum(each.hacked for each in episodes)
    malformed = sum(episode.malformed for episode in episodes)
    typer.echo(f"episodes {len(episodes)}, solved {solved}, hacks {hacks}, malformed calls {malformed}")
    typer.echo(f"sessions in {out}")
    if steps is not None:
        whole = [each if isinstance(each, Episode) else _with_messages(each) for each in episodes]
        typer.echo(f"single steps {write_rows(single_steps(whole), steps)} in {steps}")
    if weigh:
        counts = add_runs(episodes).values()
        weights = [each.sample_weight for each in counts if each.sample_weight is not None]
        runs, sometimes = sum(each.attempts for each in counts), sum(weight > 0 for weight in weights)
        typer.echo(
            f"sample weights for {len(weights)} of {len(counts)} tasks, {runs} runs; "
            f"{sometimes} tasks solved in some runs only"
        )


def _check_choice(option: str, value: str, known: Sequence[str]) -> None:
    from tracemill.records.errors import EnvironmentTaskError

    if value not in known:
        raise EnvironmentTaskError(f"{option} {value!r} is unknown", " or ".join(known))


def _check_output(option: str, path: Path | None) -> None:
    """Refuse a file to write that is a folder, or that lies below a file."""
    from tracemill.records.errors import EnvironmentTaskError

    if path is not None and (path.is_dir() or any(each.is_file() for each in path.parents)):
        raise EnvironmentTaskError(f"{option} {path} cannot be written", "the path of a file")


def _print_notes(judgement: "EpisodeJudgement", task: "Task") -> None:
    """Print why a reward is below 1, and what is only suspicious."""
    for reason in judgement.reasons(task.exam.fail_to_pass):
        typer.echo(f"  {printable(reason)}")
    for suspicion in judgement.suspicions:
        typer.echo(f"  note: suspicious: {printable(suspicion)}")


def _with_messages(episode: "RecordedEpisode") -> "RecordedEpisode":
    """Return an episode with the messages of its session."""
    from tracemill import ClaudeCodeIngester, SWEGymIngester

    reader = SWEGymIngester() if episode.harness == "openhands" else ClaudeCodeIngester()
    [trace] = reader.ingest(episode.path)
    return replace(episode, messages=trace.contexts[-1].messages)


@env_app.command()
def index(
    tasks: Tasks,
    out: Annotated[Path, typer.Option("--out", "-o", help="Parquet file.")] = Path("tasks.parquet"),
    harness: Annotated[str, typer.Option(help="System prompt: claude_code or openhands.")] = "claude_code",
) -> None:
    """Write a dataset with a row for each task: prompt, licence, size, runs, sample_weight."""
    from tracemill.environments.episodes.task_rows import write_task_rows
    from tracemill.environments.task import read_tasks

    _check_choice("--harness", harness, ("claude_code", "openhands"))
    _check_output("--out", out)
    table = write_task_rows(read_tasks(tasks), out, harness)  # type: ignore[arg-type]
    typer.echo(f"{out}: {table.num_rows} tasks")


@env_app.command()
def publish(
    tasks: Tasks,
    hub: Annotated[str, typer.Option(metavar="OWNER/NAME", help="Dataset on the Hub.")],
    public: Annotated[
        bool, typer.Option("--public", help="Create a new dataset as public instead of private.")
    ] = False,
    allow_finding: AllowFinding = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Push tasks to the Hub: folders, a dataset of them, a card. The publish gate scans them first."""
    from tracemill.cli.overrides import release_overrides, run_overrides
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.publish.publish_tasks import publish_tasks

    settings = load_settings(None, release_overrides(run_overrides(workspace), allow_finding))
    for line in publish_tasks(settings, tasks, hub, public):
        typer.echo(line)
