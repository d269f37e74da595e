"""Write generated sessions as coding agents keep them."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from generated_work import START, Turn, Work, write_json, write_lines


def claude_code(folder: Path, work: Work) -> None:
    """Write a session file of Claude Code."""

    def records() -> Iterator[Any]:
        common = {
            "sessionId": work.name,
            "version": "2.1.100",
            "cwd": "/home/dev/garden",
            "isSidechain": False,
        }
        yield common | {
            "type": "user",
            "uuid": f"{work.name}-u0",
            "parentUuid": None,
            "timestamp": work.turns[0].time,
            "message": {"role": "user", "content": work.request},
        }
        parent = f"{work.name}-u0"
        for t in work.turns:
            blocks = [
                {"type": "thinking", "thinking": t.thought, "signature": "s"},
                {"type": "text", "text": t.text},
                {"type": "tool_use", "id": t.call_id, "name": t.tool.title(), "input": t.arguments},
            ]
            for part, block in enumerate(blocks):
                own = f"{work.name}-a{t.number}-{part}"
                usage = {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 80}
                yield common | {
                    "type": "assistant",
                    "uuid": own,
                    "parentUuid": parent,
                    "timestamp": t.time,
                    "requestId": f"req_{t.number}",
                    "message": {
                        "id": f"msg_{work.name[:8]}{t.number}",
                        "role": "assistant",
                        "model": "claude-sonnet-4-5",
                        "content": [block],
                        "usage": usage,
                        "stop_reason": "tool_use",
                    },
                }
                parent = own
            own = f"{work.name}-r{t.number}"
            block = {"type": "tool_result", "tool_use_id": t.call_id, "content": t.result}
            yield common | {
                "type": "user",
                "uuid": own,
                "parentUuid": parent,
                "timestamp": t.time,
                "message": {"role": "user", "content": [block]},
                "toolUseResult": {"stdout": t.result},
            }
            parent = own

    write_lines(folder / f"{work.name}.jsonl", records())


def codex(folder: Path, work: Work) -> None:
    """Write a rollout of Codex."""

    def item(t: Turn, **payload: Any) -> Any:
        return {"timestamp": t.time, "type": "response_item", "payload": payload}

    def records() -> Iterator[Any]:
        first = work.turns[0]
        meta = {
            "id": work.name,
            "timestamp": first.time,
            "cwd": "/home/dev/garden",
            "cli_version": "0.140.0",
            "originator": "codex",
            "source": "cli",
            "base_instructions": {"text": "You are Codex."},
        }
        yield {"timestamp": first.time, "type": "session_meta", "payload": meta}
        context = {"cwd": "/home/dev/garden", "model": "gpt-5.4"}
        yield {"timestamp": first.time, "type": "turn_context", "payload": context}
        content = [{"type": "input_text", "text": work.request}]
        yield item(first, type="message", role="user", content=content)
        for t in work.turns:
            yield item(t, type="reasoning", summary=[{"type": "summary_text", "text": t.thought}])
            said = [{"type": "output_text", "text": t.text}]
            yield item(t, type="message", role="assistant", content=said)
            yield {
                "timestamp": t.time,
                "type": "event_msg",
                "payload": {"type": "agent_message", "message": t.text},
            }
            arguments = json.dumps(t.arguments)
            yield item(t, type="function_call", name="exec_command", arguments=arguments, call_id=t.call_id)
            output = f"Process exited with code 0\nOutput:\n{t.result}"
            yield item(t, type="function_call_output", call_id=t.call_id, output=output)
            usage = {
                "input_tokens": 900 + t.number,
                "cached_input_tokens": 800,
                "output_tokens": 80,
                "total_tokens": 980 + t.number,
            }
            info = {"last_token_usage": usage, "total_token_usage": usage | {"total_tokens": 1000 * t.number}}
            yield {"timestamp": t.time, "type": "event_msg", "payload": {"type": "token_count", "info": info}}

    write_lines(folder / f"rollout-2026-03-01T10-00-00-{work.name}.jsonl", records())


def pi(folder: Path, work: Work) -> None:
    """Write a session of Pi."""

    def records() -> Iterator[Any]:
        first = work.turns[0]
        yield {
            "type": "session",
            "version": 3,
            "id": work.name,
            "cwd": "/home/dev/garden",
            "timestamp": first.time,
        }
        parent: str | None = None

        def entry(own: str, time: str, message: Any) -> Any:
            return {"type": "message", "id": own, "parentId": parent, "timestamp": time, "message": message}

        yield entry("u0", first.time, {"role": "user", "content": [{"type": "text", "text": work.request}]})
        parent = "u0"
        for t in work.turns:
            content = [
                {"type": "thinking", "thinking": t.thought, "thinkingSignature": "s"},
                {"type": "text", "text": t.text},
                {"type": "toolCall", "id": t.call_id, "name": t.tool, "arguments": t.arguments},
            ]
            usage = {"input": 10, "output": 80, "cacheRead": 900, "cacheWrite": 20, "cost": {"total": 0.01}}
            yield entry(
                f"a{t.number}",
                t.time,
                {
                    "role": "assistant",
                    "content": content,
                    "usage": usage,
                    "provider": "anthropic",
                    "api": "anthropic-messages",
                    "model": "claude-sonnet-4-5",
                    "stopReason": "toolUse",
                },
            )
            parent = f"a{t.number}"
            result = {"role": "toolResult", "toolCallId": t.call_id, "toolName": t.tool, "isError": False}
            yield entry(f"r{t.number}", t.time, result | {"content": [{"type": "text", "text": t.result}]})
            parent = f"r{t.number}"

    write_lines(folder / f"{work.name}.jsonl", records())


def gemini_cli(folder: Path, work: Work) -> None:
    """Write a session of Gemini CLI."""

    def records() -> Iterator[Any]:
        yield {"sessionId": work.name, "projectHash": "ab12", "startTime": work.turns[0].time}
        yield {
            "id": "m0",
            "timestamp": work.turns[0].time,
            "type": "user",
            "content": [{"text": work.request}],
        }
        for t in work.turns:
            response = {
                "functionResponse": {"id": t.call_id, "name": t.tool, "response": {"output": t.result}}
            }
            call = {
                "id": t.call_id,
                "name": t.tool,
                "args": t.arguments,
                "status": "success",
                "result": [response],
            }
            thought = {"subject": "So", "description": t.thought, "timestamp": t.time}
            tokens = {"input": 900, "output": 80, "cached": 800, "thoughts": 3, "tool": 0, "total": 983}
            yield {
                "id": f"m{t.number}",
                "timestamp": t.time,
                "type": "gemini",
                "content": t.text,
                "model": "gemini-2.5-pro",
                "thoughts": [thought],
                "tokens": tokens,
                "toolCalls": [call],
            }

    write_lines(folder / f"session-{work.name}.jsonl", records())


def _blocks(work: Work) -> list[Any]:
    messages: list[Any] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"<task>\n{work.request}\n</task>"},
                {"type": "text", "text": "<environment_details>\n# Files\n</environment_details>"},
            ],
        }
    ]
    for t in work.turns:
        content = [
            {"type": "thinking", "thinking": t.thought},
            {"type": "text", "text": t.text},
            {"type": "tool_use", "id": t.call_id, "name": t.tool, "input": t.arguments},
        ]
        messages.append(
            {
                "role": "assistant",
                "content": content,
                "ts": START + t.number * 1000,
                "modelInfo": {"modelId": "claude-sonnet-4-5", "id": "claude-sonnet-4-5"},
            }
        )
        result = {"type": "tool_result", "tool_use_id": t.call_id, "content": t.result, "is_error": False}
        messages.append({"role": "user", "content": [result]})
    return messages


def cline(folder: Path, work: Work) -> None:
    """Write a task of Cline."""
    task = folder / str(START + int(work.name[:8], 16))
    task.mkdir()
    write_json(task / "api_conversation_history.json", _blocks(work))


def cline_session(folder: Path, work: Work) -> None:
    """Write a session of Cline 4."""
    head = {"version": 1, "updated_at": work.turns[-1].time, "agent": "lead", "sessionId": work.name}
    write_json(folder / f"{work.name}.messages.json", head | {"messages": _blocks(work)})


def cursor(folder: Path, work: Work) -> None:
    """Write a conversation into the database of Cursor."""
    rows: list[tuple[str, Any]] = []
    heads: list[Any] = []

    def add(own: str, kind: int, time: str, text: str, **fields: Any) -> None:
        heads.append({"bubbleId": own, "type": kind})
        lists = {
            key: [] for key in ("attachedCodeChunks", "lints", "gitDiffs", "images", "toolResults", "commits")
        }
        message = {"_v": 3, "type": kind, "bubbleId": own, "text": text, "createdAt": time} | lists | fields
        rows.append((f"bubbleId:{work.name}:{own}", message))

    add("u0", 1, work.turns[0].time, work.request)
    for t in work.turns:
        add(f"t{t.number}", 2, t.time, "", thinking={"text": t.thought})
        add(f"a{t.number}", 2, t.time, t.text)
        arguments = json.dumps(t.arguments)
        tool = {
            "tool": 5,
            "name": t.tool,
            "toolCallId": t.call_id,
            "status": "completed",
            "rawArgs": arguments,
            "params": arguments,
            "result": json.dumps({"contents": t.result}),
        }
        add(f"r{t.number}", 2, t.time, "", capabilityType=15, toolFormerData=tool)
    facts = {"_v": 10, "composerId": work.name, "createdAt": START, "fullConversationHeadersOnly": heads}
    rows.append((f"composerData:{work.name}", facts))
    with closing(sqlite3.connect(folder / "state.vscdb")) as connection:
        connection.execute("create table if not exists cursorDiskKV (key text unique, value blob)")
        connection.executemany(
            "insert into cursorDiskKV values (?, ?)", [(k, json.dumps(v)) for k, v in rows]
        )
        connection.commit()


def opencode(folder: Path, work: Work) -> None:
    """Write an export of opencode."""
    info = {
        "id": f"ses_{work.name}",
        "directory": "/home/dev/garden",
        "version": "1.2.5",
        "time": {"created": START},
    }
    messages: list[Any] = [
        {
            "info": {"id": "m0", "role": "user", "time": {"created": START}},
            "parts": [{"type": "text", "text": work.request}],
        }
    ]
    for t in work.turns:
        tokens = {"total": 990, "input": 10, "output": 80, "reasoning": 0, "cache": {"read": 900, "write": 0}}
        state = {
            "status": "completed",
            "input": t.arguments,
            "output": t.result,
            "title": "x",
            "time": {"start": START},
        }
        parts = [
            {"type": "step-start"},
            {"type": "reasoning", "text": t.thought},
            {"type": "text", "text": t.text},
            {"type": "tool", "callID": t.call_id, "tool": t.tool, "state": state},
            {"type": "step-finish", "reason": "tool-calls", "cost": 0.01, "tokens": tokens},
        ]
        facts = {
            "id": f"m{t.number}",
            "role": "assistant",
            "time": {"created": START + t.number * 1000},
            "modelID": "claude-sonnet-4-5",
            "finish": "tool-calls",
            "path": {"cwd": "/home/dev/garden"},
        }
        messages.append({"info": facts, "parts": parts})
    write_json(folder / f"{work.name}.json", {"info": info, "messages": messages})
