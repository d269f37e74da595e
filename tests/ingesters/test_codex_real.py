"""Rollouts of Codex of other people, where the machine has them, against a count straight from their JSON."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from codex_counts import count_rollout, items_before_answers

from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source

REAL = os.environ.get("TRACEMILL_REAL_TRACES")
COPIED = "answer copied from the session it was forked from"

if REAL:
    ROOT = Path(REAL) / "codex"
    TRUTH = [t for t in json.loads((Path(REAL) / "ground_truth.json").read_text()) if t["format"] == "codex"]

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_counts_are_the_ground_truth_and_those_of_the_json(truth: dict[str, Any]) -> None:
        (source,) = discover([ROOT / truth["file"]])
        (trace,), report = ingest_source(source)
        counts = count_rollout(source.path)
        assert (report.records, report.bytes) == (truth["types"], truth["bytes"])
        assert (report.skipped, report.unknown, report.error) == ({}, {}, None)
        copied = report.flags[COPIED]
        assert (trace.step_count, report.tool_calls, copied) == (
            counts["steps"],
            counts["calls"],
            counts["copied"],
        )
        # One copied answer, which started the fork, has no total of tokens.
        assert trace.step_count + copied - bool(copied) == truth["steps_main"]
        assert counts["calls"] + counts["copied_calls"] == truth["tool_calls"]
        messages = [message for context in trace.contexts for message in context.messages]
        assert sum(m.error_kind == "exit_code" for m in messages) == truth["tool_errors"]
        assert sum(m.role == "tool" for m in messages) == truth["tool_results"]
        assert trace.harness_version == truth["versions"][0]
        assert {state.step.model for state in trace.states()} == set(truth["models"])
        assert (report.compactions, trace.contexts[0].fidelity.system) == (truth["compactions"], "recorded")
        assert all(state.step.usage.prompt_tokens for state in trace.states())

    @pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
    def test_every_state_is_what_was_sent(truth: dict[str, Any]) -> None:
        (source,) = discover([ROOT / truth["file"]])
        (trace,), _ = ingest_source(source)
        states = list(trace.states())
        sent = items_before_answers(source.path)
        assert [_items(state.messages) for state in states] == [_joined(one) for one in sent[-len(states) :]]

    def _items(messages: Any) -> list[tuple[str, ...]]:
        """Return messages as the items that they were made of, calls without their ids."""
        items: list[tuple[str, ...]] = []
        for message in messages:
            if message.role == "assistant":
                items += [("says", message.content)] if message.content else []
                for call in message.tool_calls:
                    given = call.parsed() or {}
                    freeform = given.get("input") if set(given) == {"input"} else call.arguments
                    items.append(("calls", call.name, "null" if freeform == "{}" else str(freeform)))
            else:
                text = re.sub(r"^\[image: .*\]$", "[image]", message.content, flags=re.MULTILINE)
                items.append(
                    ("tool", message.tool_call_id, text) if message.role == "tool" else (message.role, text)
                )
        return items

    def _joined(sent: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Join the texts of one answer."""
        items: list[tuple[str, ...]] = []
        for item in sent:
            if item[0] == "says" and items and items[-1][0] == "says":
                items[-1] = ("says", f"{items[-1][1]}\n{item[1]}")
            else:
                items.append(item)
        return items
