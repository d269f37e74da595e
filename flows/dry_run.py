"""`tracemill replay --dry-run`: the very requests a replay would send, into a file; nothing is sent."""

import os
from collections.abc import Container, Iterator
from typing import Any

import orjson

from flows.questions import Batch, batches_of
from flows.settings import RunSettings
from records.files import writing
from records.workspace import Workspace
from teachers.build import build_teachers
from teachers.chat import ChatTeacher
from teachers.price_book import PRICES, PriceBook


def write_requests(settings: RunSettings) -> dict[str, Any]:
    """Write `dry-run.jsonl` into the workspace, a request a line: step, teacher, sample, the key it would be
    bought under, URL, headers but for the API key, and body. Gives the counts by teacher.

    Requests that were bought already are left out, and those of steps that need no further answer by what
    was bought. Else every teacher is asked at every step that was decided on, as where no step is settled
    early. Raises WorkspaceError where there are no traces, ConfigError
    where nobody is to be asked.
    """
    work = Workspace.open(settings.workspace, create=False)
    counts: dict[str, int] = {teacher.name: 0 for teacher in settings.asked()}
    silent: set[str] = set()
    path = work.dry_run_path
    book = PriceBook(work.root / PRICES)
    with writing(path, private=True) as temporary, temporary.open("wb") as out:
        for batch in batches_of(settings, work):
            teachers = build_teachers(settings.asked(), os.environ, book=book, to_ask=False)
            settled = batch.settled(teachers, settings)
            for teacher in teachers:
                if not isinstance(teacher, ChatTeacher):
                    silent.add(teacher.name)
                    continue
                for line in _requests(batch, teacher, settings.replay.samples, settled):
                    counts[teacher.name] += 1
                    out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    requests = {name: count for name, count in counts.items() if name not in silent}
    return {"path": str(path), "requests": requests, "send_nothing": sorted(silent)}


def _requests(
    batch: Batch, teacher: ChatTeacher, samples: int, settled: Container[str]
) -> Iterator[dict[str, Any]]:
    """The requests of one teacher at the steps that are not settled, in their order."""
    for item in batch.wanted(teacher, samples):
        if item.question.step_id in settled:
            continue
        yield {
            "step_id": item.question.step_id,
            "teacher": teacher.name,
            "sample": item.sample,
            "request_key": item.key,
            "url": teacher.url,
            "headers": dict(teacher.headers),
            "body": orjson.Fragment(teacher.body(item.question, item.sample)),
        }
        teacher.follow(item.question)
