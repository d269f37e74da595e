"""A release as others open it: rows back exactly, versions, and nothing half-written."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from release_rows import ARGUMENTS, DAY, EXACT_ONLY, SPEC, VOTES, hindsight, normalized, pair, written

from tracemill.data_cards.model.manifest import TableEntry, check_files, read_manifest
from tracemill.data_cards.model.release_spec import DropExample, OperatorDrops
from tracemill.data_cards.writing.write_release import NoRelease, Release, write_release
from tracemill.records.errors import PrivacyError, ReleaseError
from tracemill.records.message import Message
from tracemill.records.pair import DroppedPair, NormalizedDPOPair, StepVotes


def load(folder: Path, config: str, cache: Path) -> Any:
    from datasets import load_dataset

    return load_dataset(str(folder), config, split="train", cache_dir=str(cache))


def as_read(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What a reader should see, written down independently of the encoder."""
    return [
        {
            "role": m.role,
            "content": m.content,
            "tool_calls": [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {
                        "name": c.name,
                        "arguments": c.arguments if c.arguments in EXACT_ONLY else json.loads(c.arguments),
                    },
                }
                for c in m.tool_calls
            ]
            or None,
            "tool_call_id": m.tool_call_id,
            "name": m.name,
        }
        for m in messages
    ]


@pytest.fixture(scope="module")
def kept() -> list[NormalizedDPOPair]:
    return normalized(*(pair(n) for n in range(6)), hindsight(6), pair(7, simulated=True))


@pytest.fixture(scope="module")
def dropped() -> list[DroppedPair]:
    gone = pair(90)
    return [DroppedPair(gone, "x", "y", "side_length_filter(chosen)", "fewer than 8 characters", "1")]


@pytest.fixture(scope="module")
def release(
    kept: list[NormalizedDPOPair], dropped: list[DroppedPair], tmp_path_factory: pytest.TempPathFactory
) -> Release:
    others = [StepVotes("claude_code-0099:0:1", "no_agreement", VOTES[:3])]
    return written(write_release(SPEC, iter(kept), dropped, tmp_path_factory.mktemp("releases"), others))


def test_every_row_comes_back_exactly(
    release: Release, kept: list[NormalizedDPOPair], tmp_path: Path
) -> None:
    rows = load(release.path, "dpo", tmp_path)
    assert release.path.name == "2026.11.21"
    assert len(rows) == release.rows == 8
    for row, item in zip(rows, kept, strict=True):
        p = item.pair
        assert row["prompt"] == as_read(p.state_messages)
        assert row["chosen"] == as_read(p.chosen)
        assert row["rejected"] == as_read(p.rejected)
        assert row["tools"] == [tool.to_wire() for tool in p.tools]
        assert row["families"] == list(p.families)
        plain = (
            "step_id",
            "label_source",
            "cost_usd",
            "simulated",
            "presentation",
            "repository",
            "licence",
            "verified",
        )
        assert {name: row[name] for name in plain} == {name: getattr(p, name) for name in plain}
        assert row["pair_id"] == p.pair_id
        assert row["trace_id"] == p.step_id.split(":")[0]
    assert rows[0]["teachers"] == ["qwen-a", "zai-a"]
    assert len(rows[0]["prompt"]) == len(rows[1]["prompt"]) + 2


def test_the_emitted_arguments_are_kept_to_the_letter(release: Release, tmp_path: Path) -> None:
    row = load(release.path, "dpo", tmp_path)[0]
    [message] = json.loads(row["chosen_wire"])
    assert [c["function"]["arguments"] for c in message["tool_calls"]] == [*ARGUMENTS, *EXACT_ONLY]


def test_a_chat_template_sees_objects_and_no_foreign_keys(release: Release, tmp_path: Path) -> None:
    import jinja2

    template = jinja2.Environment().from_string(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
        "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}"
        "{% endif %}"
        "{% endfor %}"
    )
    row = load(release.path, "dpo", tmp_path)[0]
    text = template.render(messages=row["chosen"])
    assert text.startswith('<assistant>I look first.{"cmd": "ls"}{"limit": null, "path": "a.py"')
    assert "None" not in text


def test_votes_and_dropped_rows_are_there(release: Release, tmp_path: Path) -> None:
    votes = load(release.path, "votes", tmp_path)
    assert len(votes) == 7 * 4 + 4 + 3  # kept pairs with votes, the dropped pair, the step without one
    by_verdict = {kind: votes["verdict"].count(kind) for kind in ("pair", "dropped", "no_agreement")}
    assert by_verdict == {"pair": 28, "dropped": 4, "no_agreement": 3}
    assert votes[3]["reason"] == "student's family"
    assert votes[-1]["pair_id"] is None
    [gone] = load(release.path, "dropped", tmp_path)
    assert (gone["operator"], gone["value"]) == ("side_length_filter(chosen)", "1")
    assert gone["chosen"] == as_read(pair(90).chosen)


def test_a_table_without_rows_is_left_out(tmp_path: Path) -> None:
    spec = SPEC.model_copy(update={"views": ("sft", "soft")})
    release = written(write_release(spec, normalized(hindsight(1)), [], tmp_path))
    assert sorted(path.name for path in (release.path / "data").iterdir()) == ["dpo", "sft"]
    assert set(read_manifest(release.path).tables) == {"dpo", "sft"}
    assert len(load(release.path, "dpo", tmp_path / "cache")) == 1


def test_the_parquet_file_has_page_index_and_small_row_groups(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    release = written(write_release(SPEC, normalized(*(hindsight(n) for n in range(2500))), [], tmp_path))
    path = release.path / read_manifest(release.path).tables["dpo"].splits["train"].files[0].path
    metadata = pq.ParquetFile(path).metadata
    assert metadata.num_rows == 2500
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [1000, 1000, 500]
    assert metadata.row_group(0).column(0).has_offset_index
    assert len({row["step_id"] for row in load(release.path, "dpo", tmp_path / "cache")}) == 2500


def test_the_same_content_in_any_order_makes_no_second_version(
    release: Release, kept: list[NormalizedDPOPair], dropped: list[DroppedPair]
) -> None:
    others = [StepVotes("claude_code-0099:0:1", "no_agreement", VOTES[:3])]
    later = SPEC.model_copy(update={"created": datetime(2026, 12, 1, tzinfo=UTC), "spend_usd": 3.0})
    again = written(write_release(later, reversed(kept), dropped, release.path.parent.parent, others))
    assert again == replace(release, created=False)
    assert [path.name for path in release.path.parent.iterdir() if not path.name.startswith(".")] == [
        "2026.11.21"
    ]


def test_the_same_content_again_puts_back_tables_that_are_missing_or_changed(tmp_path: Path) -> None:
    first = written(write_release(SPEC, normalized(pair(1), pair(2)), (), tmp_path))
    tables = sorted(first.path.glob("data/*/*.parquet"))
    before = [table.read_bytes() for table in tables]
    tables[0].unlink()
    tables[1].write_bytes(b"PAR1")
    again = written(write_release(SPEC, normalized(pair(1), pair(2)), (), tmp_path))
    assert again == replace(first, created=False)
    assert [table.read_bytes() for table in tables] == before
    tables[0].unlink()
    with pytest.raises(ReleaseError, match=rf"is missing; .*remove {first.path} and write the release again"):
        write_release(SPEC, normalized(pair(2), pair(1)), (), tmp_path)


@pytest.mark.parametrize("damaged", ["", None, "---\npretty_name: x\n---\n"])
def test_the_same_content_again_puts_back_a_card_that_cannot_be_published(
    tmp_path: Path, damaged: str | None
) -> None:
    first = written(write_release(SPEC, normalized(pair(1)), (), tmp_path))
    card = first.path / "README.md"
    before = card.read_text()
    card.unlink()
    if damaged is not None:
        card.write_text(damaged)
    written(write_release(SPEC, normalized(pair(1)), (), tmp_path))
    assert card.read_text() == before


def test_versions_count_up_on_one_day_and_never_go_back(tmp_path: Path) -> None:
    days = [DAY, DAY, DAY, datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC)]
    versions = [
        written(
            write_release(SPEC.model_copy(update={"created": day}), normalized(pair(n)), [], tmp_path)
        ).version
        for n, day in enumerate(days)
    ]
    assert versions == ["2026.11.21", "2026.11.21.1", "2026.11.21.2", "2026.11.21.3", "2026.11.22"]


def test_a_version_that_is_taken_or_older_is_refused(tmp_path: Path) -> None:
    spec = SPEC.model_copy(update={"version": "2026.11.21"})
    first = written(write_release(spec, normalized(pair(1)), [], tmp_path))
    assert not written(write_release(spec, normalized(pair(1)), [], tmp_path)).created
    before = (first.path / "manifest.json").read_bytes()
    with pytest.raises(ReleaseError, match=r"2026\.11\.21 exists with other content"):
        write_release(spec, normalized(pair(2)), [], tmp_path)
    with pytest.raises(ReleaseError, match=r"2026\.11\.20 is older than 2026\.11\.21"):
        write_release(SPEC.model_copy(update={"version": "2026.11.20"}), normalized(pair(2)), [], tmp_path)
    for misspelt in ("1.0", "2026.13.01", "2026.11.21.0", "../2026.11.21"):
        with pytest.raises(ReleaseError, match="is not a version of a release"):
            write_release(SPEC.model_copy(update={"version": misspelt}), normalized(pair(2)), [], tmp_path)
    assert (first.path / "manifest.json").read_bytes() == before
    assert sorted(path.name for path in first.path.parent.iterdir()) == [".lock", "2026.11.21"]


@pytest.mark.parametrize("redaction", ["", "  "])
def test_rows_without_a_redaction_are_refused(tmp_path: Path, redaction: str) -> None:
    with pytest.raises(PrivacyError, match="no redaction is stated"):
        write_release(SPEC.model_copy(update={"redaction": redaction}), normalized(pair(1)), [], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_pair_means_no_release_and_names_the_last_operator(
    tmp_path: Path, dropped: list[DroppedPair]
) -> None:
    said = DropExample(pair_id="p", reason="text_len below 8", value="", chosen="", rejected="")
    length = OperatorDrops(operator="side_length_filter(chosen)", rows_in=3, dropped=2, examples=(said,))
    losses = (
        length,
        OperatorDrops(operator="sides_similar_filter(chosen, rejected)", rows_in=1, dropped=1),
        OperatorDrops(operator="document_deduplicator(preference)", rows_in=0, dropped=0),
    )
    spec = SPEC.model_copy(update={"losses": losses})
    recipe = f"the recipe {SPEC.recipe} (`normalize.recipe`)"
    assert write_release(spec, [], dropped, tmp_path) == NoRelease(
        "no pair was left: sides_similar_filter(chosen, rejected) dropped the last 1 of 3, "
        "side_length_filter(chosen) dropped 2; "
        f"change its bounds (text_len below 8) or leave it out, in {recipe}"
    )
    spec = SPEC.model_copy(update={"losses": losses[1:]})
    assert write_release(spec, [], dropped, tmp_path) == NoRelease(
        "no pair was left: sides_similar_filter(chosen, rejected) dropped the last 1 of 1; "
        f"change its bounds or leave it out, in {recipe}"
    )
    capped = OperatorDrops(operator="trace_cap", rows_in=4, dropped=4)
    assert write_release(SPEC.model_copy(update={"losses": (capped,)}), [], dropped, tmp_path) == NoRelease(
        "no pair was left: trace_cap dropped the last 4 of 4; raise the caps of `[pairs]`"
    )
    assert write_release(SPEC, [], dropped, tmp_path) == NoRelease(
        "no pair was left of 1: dropped by side_length_filter(chosen)"
    )
    assert write_release(SPEC, [], [], tmp_path) == NoRelease("no pair was found")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    blocked = tmp_path / "releases"
    blocked.write_text("a file in the way", encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"releases/demo cannot be written \(Not a directory\)"):
        write_release(SPEC, normalized(pair(1)), [], blocked)
    assert blocked.read_text(encoding="utf-8") == "a file in the way"


def test_a_source_of_pairs_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[NormalizedDPOPair]:
        yield from normalized(*(hindsight(n) for n in range(1500)))
        raise RuntimeError("the shard is gone")

    with pytest.raises(RuntimeError, match="the shard is gone"):
        write_release(SPEC, failing(), [], tmp_path)
    assert [path.name for path in (tmp_path / "demo").iterdir()] == [".lock"]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from release_rows import SPEC, hindsight, normalized
from tracemill.data_cards.writing.write_release import write_release

def dying():
    yield from normalized(*(hindsight(n) for n in range(1500)))
    os.kill(os.getpid(), signal.SIGKILL)

write_release(SPEC, dying(), [], Path(sys.argv[1]))
"""


def test_a_killed_writer_leaves_no_version_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    tests = str(Path(__file__).resolve().parents[1] / "support")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), tests], check=False, env=dict(os.environ)
    )
    assert done.returncode == -signal.SIGKILL
    left = [path.name for path in (tmp_path / "demo").iterdir()]
    assert len(left) == 2
    assert all(name.startswith(".") for name in left)
    release = written(write_release(SPEC, normalized(pair(1)), [], tmp_path))
    assert sorted(path.name for path in release.path.parent.iterdir()) == [".lock", "2026.11.21"]


def test_text_no_parquet_file_can_hold_does_not_stop_the_release(tmp_path: Path) -> None:
    odd = pair(
        1, rejected=(Message("assistant", "half \ud800 a pair"),), state_messages=(Message("user", "\udc00"),)
    )
    release = written(write_release(SPEC, normalized(odd), [], tmp_path))
    [row] = load(release.path, "dpo", tmp_path / "cache")
    assert row["rejected"][0]["content"] == "half \ufffd a pair"
    assert json.loads(row["rejected_wire"])[0]["content"] == "half \ud800 a pair"


def test_a_large_table_lies_in_several_files(tmp_path: Path) -> None:
    """A file ends at the row group that takes it beyond its size."""
    rows = normalized(*(hindsight(n) for n in range(2500)))
    spec = SPEC.model_copy(update={"file_bytes": 1000, "views": ()})
    release = written(write_release(spec, rows, [], tmp_path))
    manifest = read_manifest(release.path)
    entry = manifest.tables["dpo"].splits["train"]
    names = [f"data/dpo/train-{n:05}-of-00003.parquet" for n in range(3)]
    assert [(file.path, file.rows) for file in entry.files] == list(
        zip(names, (1000, 1000, 500), strict=True)
    )
    assert sorted(path.name for path in (release.path / "data" / "dpo").iterdir()) == [
        name.rpartition("/")[2] for name in names
    ]
    assert entry.rows == len({row["step_id"] for row in load(release.path, "dpo", tmp_path / "c")}) == 2500
    whole = written(
        write_release(SPEC.model_copy(update={"views": ()}), reversed(rows), [], tmp_path / "one")
    )
    assert whole.content_fingerprint == release.content_fingerprint
    (release.path / names[1]).unlink()
    again = written(write_release(spec, rows, [], tmp_path))
    assert (again.created, again.path) == (False, release.path)
    check_files(release.path, manifest)
    (release.path / names[2]).write_bytes(b"PAR1")
    with pytest.raises(ReleaseError, match=r"train-00002-of-00003\.parquet was changed"):
        check_files(release.path, manifest)


def test_an_entry_of_one_file_is_read_as_it_was_written_before() -> None:
    file = {"path": "data/dpo/train-00000-of-00001.parquet", "rows": 3, "file_bytes": 5, "memory_bytes": 7}
    entry = TableEntry.model_validate({"splits": {"train": file | {"blake2b": "00"}}})
    assert (entry.rows, entry.file_bytes, entry.memory_bytes) == (3, 5, 7)
    assert entry.splits["train"].files[0].blake2b == "00"
