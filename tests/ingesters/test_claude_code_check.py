"""Claude Code: rebuilt prefixes held against the prompt tokens that the steps report."""

from pathlib import Path
from typing import Any

import pytest
from claude_code_records import answer, boundary, ingest, line, read, says, summary, thinks, user

from tracemill.ingesters.claude_code.token_check import (
    ADDED,
    SHORTENED,
    CheckedStep,
    PromptCheck,
    thinking_tokens_for_check,
)
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

BASE = 30_000
SIZE = 3000


def grown(
    steps: int, extra: dict[int, int] | None = None, first: int = 1, at: int = 0, **fields: Any
) -> list[dict[str, Any]]:
    """Calls with results of SIZE characters, from `first` on. Each step reports a third of the characters
    of its prefix, which begins with `at` of them, plus what `extra` says from that step on."""
    records: list[dict[str, Any]] = [user("u0", None, "go")] if first == 1 else []
    parent, chars, hidden = ("u0" if first == 1 else f"r{first - 1}"), at, 0
    for number in range(first, first + steps):
        hidden += (extra or {}).get(number, 0)
        call = (f"t{number}", "Read", {})
        tokens = BASE + chars // 3 + hidden
        records.append(says(f"a{number}", parent, f"m{number}", call, tokens=tokens, **fields))
        parent = f"r{number}"
        records.append(answer(parent, f"a{number}", f"t{number}", "x" * (SIZE - 6)))
        chars += SIZE
    return records


def fidelities(trace: Trace) -> str:
    return "".join("l" if state.fidelity.context == "lost" else "c" for state in trace.states())


def flags(report: IngestReport) -> dict[str, int]:
    names = (ADDED, SHORTENED, "prefix_tokens_mismatch")
    return {name: report.flags[name] for name in names if report.flags[name]}


def test_a_session_whose_prefixes_follow_the_tokens_is_not_flagged(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *grown(12))
    assert traces[0].notes["prefix_tokens_r_permille"] == 1000
    assert (fidelities(traces[0]), flags(report)) == ("c" * 12, {})


def test_prefixes_that_do_not_follow_the_reported_tokens_are_flagged(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *grown(12, dict.fromkeys(range(2, 13), -2500)))
    assert traces[0].notes["prefix_tokens_r_permille"] == -1000
    assert flags(report) == {"prefix_tokens_mismatch": 1}


@pytest.mark.parametrize("steps", [1, 7])
def test_few_steps_tell_nothing(tmp_path: Path, steps: int) -> None:
    traces, report = ingest(tmp_path, *grown(steps, dict.fromkeys(range(2, 8), -2500)))
    assert "prefix_tokens_r_permille" not in traces[0].notes
    assert flags(report) == {}


def test_tokens_that_fall_while_the_prefix_grows_lose_context_from_there_on(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *grown(12, {7: -20_000}))
    assert fidelities(traces[0]) == "cccccc" + "llllll"
    assert flags(report) == {SHORTENED: 1, "prefix_tokens_mismatch": 1}


def test_tokens_that_rise_by_more_than_what_came_lose_context_from_there_on(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *grown(12, {4: 15_000}))
    assert fidelities(traces[0]) == "ccc" + "lllllllll"
    assert flags(report)[ADDED] == 1


def test_small_moves_of_the_tokens_are_no_fault(tmp_path: Path) -> None:
    traces, report = ingest(tmp_path, *grown(30, {4: 7_000, 7: -4_500}))
    assert (fidelities(traces[0]), flags(report)) == ("c" * 30, {})


@pytest.mark.parametrize("media", ["image", "document", "tool_reference"])
def test_what_a_placeholder_stands_for_may_cost_tokens(tmp_path: Path, media: str) -> None:
    records = grown(12, {5: 15_000})
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    records[8] = answer("r4", "a4", "t4", [{"type": media, "source": source, "tool_name": "X"}])
    assert fidelities(read(tmp_path, *records)) == "c" * 12


def test_thinking_explains_what_is_sent_again_and_what_is_dropped(tmp_path: Path) -> None:
    records = grown(12, {5: 12_000, 9: -12_000})
    plain = read(tmp_path, *records)
    assert fidelities(plain) == "ccccllllllll"
    records[7]["message"]["content"].insert(0, thinks("h" * 36_000))
    assert fidelities(read(tmp_path, *records)) == "c" * 12


def test_recorded_thinking_may_be_the_summary_of_more(tmp_path: Path) -> None:
    records = grown(12, {5: 29_000})
    assert fidelities(read(tmp_path, *records)) == "cccc" + "llllllll"
    records[7]["message"]["content"].insert(0, thinks("h" * 28_000))
    assert fidelities(read(tmp_path, *records)) == "c" * 12


def test_thinking_that_is_not_recorded_is_guessed_from_the_tokens_it_took(tmp_path: Path) -> None:
    records = grown(12, {5: 12_000, 9: -12_000}, stop_reason="tool_use")
    records[7]["message"]["usage"]["output_tokens"] = 12_000
    assert fidelities(read(tmp_path, *records)) == "c" * 12
    assert thinking_tokens_for_check(300, 10, 5000) == 100
    assert thinking_tokens_for_check(0, 300, 5000) == 4900
    assert (thinking_tokens_for_check(0, 300, None), thinking_tokens_for_check(0, 300, 50)) == (0, 0)


def after_compaction(hidden: int) -> list[dict[str, Any]]:
    """A session that is compacted; behind the summary the prompt holds `hidden` tokens more."""
    records = grown(10)
    records += [boundary("c1", {"trigger": "auto"}), summary("r10b", "c1", "s" * SIZE)]
    late = grown(4, {11: hidden}, first=11, at=SIZE)
    late[0]["parentUuid"] = "r10b"
    return records + late


def test_files_put_back_after_a_compaction_without_a_record_lose_its_context(tmp_path: Path) -> None:
    whole, report = ingest(tmp_path, *after_compaction(0))
    assert (fidelities(whole[0]), flags(report)) == ("c" * 14, {})
    traces, report = ingest(tmp_path, *after_compaction(12_000))
    assert fidelities(traces[0]) == "c" * 10 + "llll"
    assert [context.lost_from for context in traces[0].contexts] == [0, 0]
    assert flags(report)[ADDED] == 1


def test_messages_that_a_compaction_keeps_are_no_steps_to_be_held_against(tmp_path: Path) -> None:
    records = after_compaction(0)
    kept = {"preservedMessages": {"anchorUuid": "r10b", "uuids": ["a10", "r10"]}}
    records[21] = boundary("c1", kept)
    for record in records[23:]:
        if record["type"] == "assistant":
            record["message"]["usage"]["input_tokens"] += SIZE // 3
    traces, report = ingest(tmp_path, *records)
    assert len(traces[0].contexts[1].messages) == 1 + 2 + 8
    assert (fidelities(traces[0]), flags(report)) == ("c" * 14, {})


def test_a_rewind_is_held_against_the_step_it_shares(tmp_path: Path) -> None:
    def rewound(hidden: int) -> str:
        tokens = BASE + 5 * SIZE // 3 + hidden
        late = [user("u9", "r5", "anew"), says("b9", "u9", "m99", "so", tokens=tokens)]
        return fidelities(read(tmp_path, *grown(10), *late))

    assert rewound(0) == "c" * 11
    assert rewound(-12_000) == "c" * 10 + "l"
    assert rewound(15_000) == "c" * 10 + "l"


def test_a_context_that_goes_on_from_a_lost_one_is_lost(tmp_path: Path) -> None:
    late = [user("u9", "r8", "anew"), says("b9", "u9", "m99", "so", tokens=BASE + 8 * SIZE // 3 - 20_000)]
    assert fidelities(read(tmp_path, *grown(10, {7: -20_000}), *late)) == "ccccccllll" + "l"
    late = [user("u9", "r5", "anew"), says("b9", "u9", "m99", "so", tokens=BASE + 5 * SIZE // 3)]
    assert fidelities(read(tmp_path, *grown(10, {7: -20_000}), *late)) == "ccccccllll" + "c"


def test_a_microcompaction_that_is_recorded_is_no_fault(tmp_path: Path) -> None:
    metadata = {"compactedToolIds": [f"t{n}" for n in range(1, 9)], "tokensSaved": 8000}
    records = grown(10)
    records.append(
        line("system", "r10b", "r10", subtype="microcompact_boundary", microcompactMetadata=metadata)
    )
    late = grown(4, first=11, at=2 * SIZE + 8 * 40)
    late[0]["parentUuid"] = "r10b"
    traces, report = ingest(tmp_path, *records, *late)
    assert (fidelities(traces[0]), flags(report)) == ("c" * 14, {})
    assert traces[0].notes["prefix_tokens_r_permille"] >= 999


def test_steps_behind_a_hole_are_a_part_of_their_own(tmp_path: Path) -> None:
    records = grown(20)
    for record in records[21:]:
        if record["type"] == "assistant":
            record["message"]["usage"]["input_tokens"] += 80_000
    records[21]["parentUuid"] = "gone"
    traces, report = ingest(tmp_path, *records)
    assert traces[0].notes["prefix_tokens_r_permille"] == 1000
    assert fidelities(traces[0]) == "c" * 10 + "l" * 10
    assert "prefix_tokens_mismatch" not in flags(report)


def test_the_worst_part_counts() -> None:
    check = PromptCheck()
    check.start_context(None)
    for number in range(10):
        assert check.check_step(CheckedStep(3000 * number, 30_000 + 1000 * number), number == 0, True) == ""
    assert check.correlation() == pytest.approx(1.0)
    check.start_segment()
    for number in range(10):
        check.check_step(CheckedStep(3000 * number, 90_000 - 1000 * number), False, False)
    assert check.correlation() == pytest.approx(-1.0)
