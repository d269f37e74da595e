"""Count a rollout of Codex straight from its JSON, without the reader.

An answer is a run of the model's items: it ends before an item of another side, at a new total of tokens, and
at the end of a turn. The copied part of a fork is counted apart.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CALLS = ("function_call", "custom_tool_call", "web_search_call", "local_shell_call")


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a rollout; a line that is not JSON is passed over."""
    for line in path.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except ValueError:
            continue


def count_rollout(path: Path) -> Counter[str]:
    """Return records, steps, calls, results, compactions and rollbacks; `copied` are steps of the origin."""
    counts: Counter[str] = Counter()
    own = ""
    copied, acts, calls, total = False, False, 0, None
    for record in read_records(path):
        kind, body = record["type"], record["payload"]
        what = body.get("type")
        counts["records"] += 1
        if kind == "session_meta":
            own = own or body["id"]
            copied = copied or body["id"] != own or bool(body.get("forked_from_id"))
        ours = kind == "response_item" and (
            what in ("reasoning", *CALLS) or (what == "message" and body["role"] == "assistant")
        )
        if ours:
            acts = (
                acts or what in CALLS or (what == "message" and any(p.get("text") for p in body["content"]))
            )
            calls += what in CALLS
            continue
        ends = kind in ("response_item", "compacted", "turn_context")
        if kind == "event_msg":
            ends = what in ("task_started", "task_complete", "turn_aborted", "thread_rolled_back")
            if what == "token_count" and body["info"] and body["info"]["total_token_usage"] != total:
                total, ends = body["info"]["total_token_usage"], True
        if ends and acts:
            cut = what == "turn_aborted" and not calls
            counts["copied" if copied else "cut" if cut else "steps"] += 1
            counts["copied_calls" if copied else "calls"] += calls
        if ends:
            acts, calls = False, 0
        if copied and len(body.get("turn_id") or "") == 36 and body["turn_id"] > own:
            copied = False
        if not copied:
            counts["compactions"] += kind == "compacted"
            counts["rollbacks"] += what == "thread_rolled_back"
            counts["results"] += kind == "response_item" and str(what).endswith("_output")
    if acts:
        counts["copied" if copied else "steps"] += 1
        counts["copied_calls" if copied else "calls"] += calls
    return counts


def items_before_answers(path: Path) -> list[list[tuple[str, ...]]]:
    """Return for each answer of a rollout the items that were sent before it, of all sides, in their order.

    Each item is its kind and its texts; of one answer, texts stand before calls, and what is said between a
    call and its result stands behind the result. A file with a compaction, a rewind or an interrupt does not
    fit.
    """
    sent: list[tuple[str, ...]] = []
    waits: list[tuple[str, ...]] = []
    unanswered: set[str] = set()
    answer: list[tuple[str, ...]] = []
    prompts: list[list[tuple[str, ...]]] = []
    total: Any = None
    for record in read_records(path):
        kind, body = record["type"], record["payload"]
        what = body.get("type")
        if kind == "session_meta" and not sent:
            sent.append(("system", body["base_instructions"]["text"]))
        elif kind == "event_msg" and what == "token_count" and body["info"]:
            if body["info"]["total_token_usage"] != total:
                total = body["info"]["total_token_usage"]
                sent, answer = _close(sent, answer, prompts), []
        elif kind == "response_item" and what == "message" and body["role"] != "assistant":
            sent, answer = _close(sent, answer, prompts), []
            role = "user" if body["role"] == "user" else "system"
            said = (role, "\n".join(_shown(part) for part in body["content"]))
            (waits if unanswered else sent).append(said)
        elif kind == "response_item" and what.endswith("_output"):
            sent, answer = _close(sent, answer, prompts), []
            output = body["output"]
            text = output if isinstance(output, str) else "\n".join(filter(None, map(_shown, output)))
            sent.append(("tool", body["call_id"], text))
            unanswered.discard(body["call_id"])
            if not unanswered:
                sent, waits = sent + waits, []
        elif kind == "response_item" and what != "reasoning":
            answer.append(_answer_item(body))
            unanswered |= {body["call_id"]} if body["type"] in CALLS[:2] else set()
    _close(sent, answer, prompts)
    return prompts


def _close(
    sent: list[tuple[str, ...]], answer: list[tuple[str, ...]], prompts: list[list[tuple[str, ...]]]
) -> list[tuple[str, ...]]:
    if not answer:
        return sent
    prompts.append(list(sent))
    return sent + sorted(answer, key=lambda item: item[0] != "says")


def _answer_item(body: dict[str, Any]) -> tuple[str, ...]:
    if body["type"] == "message":
        return "says", "\n".join(part["text"] for part in body["content"])
    if body["type"] == "web_search_call":
        return (
            "calls",
            "web_search",
            json.dumps(body.get("action"), sort_keys=True, separators=(",", ":"), ensure_ascii=False),
        )
    if body["type"] == "custom_tool_call":
        return "calls", body["name"], body["input"]
    return "calls", "__".join(filter(None, (body.get("namespace"), body["name"]))), body["arguments"]


def _shown(part: dict[str, Any]) -> str:
    return part.get("text", "[image]")
