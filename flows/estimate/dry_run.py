"""Write the requests of `tracemill replay --dry-run` into a file; nothing is sent."""

import os
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any

import orjson

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.estimate.pending_questions import QuestionBatch, batch_pending_questions
from tracemill.flows.labeling.vote_policy import check_vote
from tracemill.records.storage.atomic_files import write_atomically
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.chat_teacher import ChatTeacher
from tracemill.teachers.planning.prompt_length import find_overlong_prompts
from tracemill.teachers.pricing.price_book import PRICES, PriceBook


def write_requests(settings: RunSettings) -> dict[str, Any]:
    """Write the requests of a replay to `dry-run.jsonl` in the workspace, and return counts by teacher.

    A line has step, teacher, sample, the request key, URL, headers without the API key, and body.

    Left out are requests whose answers are in the ledger, those of steps whose label is certain by these
    answers, and prompts that are longer than the context of a model with a known model card
    (`find_overlong_prompts` counts them by teacher). Every teacher is asked at every other decided step, as
    without early stopping. `decided_later` counts the steps that a gate decides after answers to earlier
    steps arrive, `not_shown` names the teachers whose requests have another form.

    Raises WorkspaceError if there are no traces, ConfigError if there are no teachers or the vote cannot be
    won.
    """
    check_vote(settings)
    work = Workspace.open(settings.workspace, create=False)
    counts: dict[str, int] = {teacher.name: 0 for teacher in settings.asked_teachers()}
    silent = {teacher.name for teacher in settings.asked_teachers() if teacher.sends_to(os.environ) is None}
    other: set[str] = set()
    unfit: Counter[str] = Counter()
    path, later = work.dry_run_path, 0
    book = PriceBook(work.root / PRICES)
    with write_atomically(path, private=True) as temporary, temporary.open("wb") as out:
        for batch in batch_pending_questions(settings, work):
            teachers = build_teachers(settings.asked_teachers(), os.environ, book=book, to_ask=False)
            settled = batch.settled(teachers, settings)
            later += batch.open_steps
            for teacher in teachers:
                if not isinstance(teacher, ChatTeacher):
                    other.add(teacher.name)
                    continue
                for line in _requests(batch, teacher, settings.replay.samples, settled, unfit):
                    counts[teacher.name] += 1
                    out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    requests = {name: count for name, count in counts.items() if name not in other | silent}
    return {
        "path": str(path),
        "requests": requests,
        "too_long": dict(unfit),
        "decided_later": later,
        "send_nothing": sorted(silent),
        "not_shown": sorted(other - silent),
    }


def _requests(
    batch: QuestionBatch, teacher: ChatTeacher, samples: int, settled: Container[str], unfit: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Yield the requests of one teacher at the steps that are not settled, in their order.

    Requests longer than its context are counted in `unfit`.
    """
    items = [item for item in batch.wanted(teacher, samples) if item.question.step_id not in settled]
    long = {item.index for item in find_overlong_prompts(items)}
    unfit[teacher.name] += len(long)
    for item in items:
        if item.index in long:
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
