"""Read the files beside a history: the messages of the view, shortened texts, models, task metadata."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport, record_type

VIEW = "ui_messages.json"
SHORTENED = "context_history.json"
METADATA = "task_metadata.json"
ITEM = "history_item.json"
COMPANIONS = (VIEW, SHORTENED, METADATA, ITEM)
"""Files of a task folder that are read with its history."""
DAMAGED = "file beside the history that cannot be read"
_TASK_ID = re.compile(r"\d{10,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SAYS = """error api_req_started api_req_finished api_req_retried api_req_retry_delayed error_retry
    api_req_rate_limit_wait api_req_deleted deleted_api_reqs text image reasoning completion_result
    plan_completion_result user_feedback user_feedback_diff command command_output tool task task_progress
    shell_integration_warning shell_integration_warning_with_suggestion browser_action_launch browser_action
    browser_action_result browser_session_status mcp_server_request_started mcp_server_response
    mcp_notification use_mcp_server subtask_result checkpoint_saved checkpoint_created rooignore_error
    clineignore_error command_permission_denied diff_error condense_context condense_context_error
    sliding_window_truncation codebase_search_result user_edit_todos too_many_tools_warning
    load_mcp_documentation info hook_status hook_output_stream subagent use_subagents subagent_usage
    conditional_rules_applied generate_explanation compaction new_task_started"""
_ASKS = """followup plan_mode_respond plan_mode_response act_mode_respond command command_output
    completion_result tool api_req_failed resume_task resume_completed_task mistake_limit_reached
    browser_action_launch use_mcp_server new_task condense summarize_task report_bug use_subagents
    auto_approval_max_req_reached finishTask"""
_KNOWN = frozenset((*_SAYS.split(), *_ASKS.split()))
_BEFORE_ANSWER = frozenset(
    (
        *("error", "error_retry", "info", "api_req_failed", "api_req_retried", "api_req_retry_delayed"),
        *("checkpoint_created", "hook_status", "hook_output_stream"),
    )
)
"""Messages of the view that may come before the history of a request is cut."""
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request of the view: its time, and its cost data."""

    time: int
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class TaskFiles:
    """The metadata in the files beside a history.

    `by_index` are the last requests by the answer's place minus two, `ranges` the hidden messages by the
    place of the last message then, `shortened` the replaced texts as (time, message, block, text), `events`
    the times of summaries and truncations by their id or text. Of the places in `unsettled` only messages
    from before the request was cut were seen.
    """

    has_view: bool = False
    requests: list[ApiRequest] = field(default_factory=list)
    by_index: dict[int, ApiRequest] = field(default_factory=dict)
    ranges: dict[int, Range | None] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    shortened: list[tuple[int, int, int, str]] = field(default_factory=list)
    models: list[tuple[int, str]] = field(default_factory=list)
    item: Mapping[str, Any] = field(default_factory=dict)
    took_back: int = 0
    unsettled: set[int] = field(default_factory=set)

    def request_of(self, place: int, time: int | None) -> ApiRequest | None:
        """Return the request whose answer is the message at a place."""
        if self.by_index or time is None:
            return self.by_index.get(place - 2)
        return next((each for each in reversed(self.requests) if each.time <= time), None)

    def range_at(self, place: int) -> Range | None:
        """Return the messages that were hidden from the answer at a place."""
        known = [index for index in self.ranges if index < place]
        return self.ranges[max(known)] if known else None

    def model_at(self, time: int | None) -> str | None:
        """Return the model in use at a time, the first one where the time is not known."""
        before = [model for since, model in self.models if time is None or since <= time]
        return before[0 if time is None else -1] if before else None

    def answers_in_view(self) -> int:
        """Return how many requests of the view were answered."""
        return sum(bool(each.metadata.get("tokensOut")) for each in self.requests)


def companion_paths(path: Path) -> Iterator[str]:
    """Yield the paths of the files that are read with a history."""
    yield from (str(path.parent / name) for name in COMPANIONS)


def task_id(path: Path, item: Mapping[str, Any]) -> str | None:
    """Return the id of a task: its own, else the name of its folder where that is one."""
    name = path.absolute().parent.name
    return first_text(item.get("id"), name if _TASK_ID.fullmatch(name) else None)


def read_task_files(path: Path, report: IngestReport) -> TaskFiles:
    """Read the files beside a history; a damaged one is flagged."""
    files = TaskFiles()
    view = _read(path.parent / VIEW, list, report)
    if view is not None:
        files.has_view = True
        for message in view:
            _add_view_message(files, as_mapping(message), report)
    for entry in _read(path.parent / SHORTENED, list, report) or ():
        files.shortened += _shortened(entry)
    files.shortened.sort(key=lambda each: each[0])
    metadata = _read(path.parent / METADATA, dict, report) or {}
    used = metadata.get("model_usage")
    for each in map(as_mapping, used if isinstance(used, list) else ()):
        if isinstance(each.get("ts"), int) and (model := first_text(each.get("model_id"))):
            files.models.append((each["ts"], model))
    files.item = _read(path.parent / ITEM, dict, report) or {}
    return files


def _read(path: Path, kind: type, report: IngestReport) -> Any:
    if not path.is_file():
        return None
    try:
        value = read_json(path)
    except SourceError:
        value = None
    if not isinstance(value, kind):
        report.flags[DAMAGED] += 1
        return None
    return value


def _add_view_message(files: TaskFiles, message: Mapping[str, Any], report: IngestReport) -> None:
    kind = first_text(message.get("say"), message.get("ask"))
    if kind not in _KNOWN:
        report.unknown[f"view {record_type(kind)}"] += 1
    time, index = message.get("ts"), message.get("conversationHistoryIndex")
    if not isinstance(time, int):
        return
    for key, name in (("contextCondense", "condenseId"), ("contextTruncation", "truncationId")):
        event = as_mapping(message.get(key))
        if event_id := first_text(event.get(name), event.get("summary")):
            files.events[event_id] = time
    files.took_back += kind in ("deleted_api_reqs", "api_req_deleted")
    if kind == "api_req_started":
        request = ApiRequest(time, _facts(message.get("text")))
        files.requests.append(request)
        if isinstance(index, int):
            files.by_index[index] = request
    elif isinstance(index, int) and (index not in files.ranges or index in files.unsettled):
        files.ranges[index] = _range(message.get("conversationHistoryDeletedRange"))
        (files.unsettled.add if kind in _BEFORE_ANSWER else files.unsettled.discard)(index)


def _facts(text: Any) -> Mapping[str, Any]:
    try:
        return as_mapping(orjson.loads(text)) if isinstance(text, str) else {}
    except orjson.JSONDecodeError:
        return {}


def _range(value: Any) -> Range | None:
    whole = isinstance(value, list) and len(value) == 2 and all(isinstance(each, int) for each in value)
    return (value[0], value[1]) if whole else None


def _shortened(entry: Any) -> Iterator[tuple[int, int, int, str]]:
    """Yield the replaced texts of a message: [message, [kind, [[block, [[time, type, [text], ...]]]]]]."""
    try:
        place, (_, blocks) = entry
        for block, changes in blocks:
            for time, kind, texts, *_ in changes:
                if kind == "text" and all(isinstance(each, int) for each in (time, place, block)):
                    yield time, place, block, str(texts[0])
    except (TypeError, ValueError, IndexError):
        return
