"""Files of JSON objects that grow at their end."""

import tracemalloc
from pathlib import Path

from tracemill.flows.run_state.jsonl_log import append_lines, read_jsonl_log, rewrite_lines


def test_many_lines_take_the_memory_of_their_text(tmp_path: Path) -> None:
    """30,000 small sessions are one shard, whose marks are written together."""
    path = tmp_path / "lines.jsonl"
    tracemalloc.start()
    try:
        assert append_lines(path, ({"number": number, "text": "x" * 600} for number in range(3_000))) == 3_000
        assert tracemalloc.get_traced_memory()[1] < 3 * path.stat().st_size
        rewrite_lines(path, ({"number": number, "text": "x" * 600} for number in range(3_000)))
        assert tracemalloc.get_traced_memory()[1] < 3 * path.stat().st_size
    finally:
        tracemalloc.stop()
    assert [value["number"] for value in read_jsonl_log(path)] == list(range(3_000))
    assert append_lines(path, []) == 0


def test_a_line_that_was_cut_is_passed_over_and_those_after_it_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":')
    append_lines(path, [{"a": 2}, {"a": 3}])
    assert [value["a"] for value in read_jsonl_log(path)] == [1, 2, 3]
