"""The default recipe over pairs made by hand: which rows stay, which go, and what is said of them."""

import json
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from plain_pairs import plain_pair

from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.normalize.normalizer import DJNormalizer, NormalizedPairs, OperatorCount
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair

REAL = os.environ.get("TRACEMILL_REAL_TRACES")


class Untouchable(list[Message]):
    """A state that must not be read: a context belongs to the release writer alone."""

    def __iter__(self) -> Iterator[Message]:
        raise AssertionError("the state was read")

    def __getitem__(self, key: object) -> Message:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise AssertionError("the state was read")


def said(text: str) -> tuple[Message, ...]:
    return (Message("assistant", text),)


def called(name: str, arguments: str) -> tuple[Message, ...]:
    return (Message("assistant", "", (ToolCall("call-1", name, arguments),)),)


def pair(number: int, chosen: tuple[Message, ...], rejected: tuple[Message, ...]) -> DPOPair:
    return plain_pair(
        number,
        state_messages=Untouchable(),
        chosen=chosen,
        rejected=rejected,
        rejected_operation="run",
        source="claude_code",
        harness="claude_code",
        label_source="teachers",
    )


FINE = "I read the file first."
OTHER = "I guess and edit at once."
LENGTH, SPECIAL, REPEATS = "side_length_filter", "side_special_characters_filter", "side_repetition_filter"
TURNS, DIFFER = "side_turns_filter", "general_field_filter(chosen != rejected)"
SIMILAR, RATIO = "sides_similar_filter(chosen, rejected)", "sides_ratio_filter(chosen, rejected)"
MANY, OTHERS = (
    ["".join(signs) for signs in product(letters, repeat=3)]
    for letters in ("abcdefghijklmnop", "qrstuvwxyzABCDEF")
)
GREP = '{"command": "grep -rn lantern src/glow/brightness/slider.py --include all"}'
LS = called("Bash", '{"command": "ls"}')
LINES = [f"line {number} of the old text, as it was before" for number in range(60)]
LONG_EDIT = json.dumps(
    {"old_string": "\n".join(LINES), "new_string": "\n".join([*LINES[:59], "another line"])}
)
OTHER_EDIT = LONG_EDIT.replace("line 30 of", "line 31 of")
ANSWER = f"The slider has {' '.join(MANY[:60])} steps"
CASES: tuple[tuple[tuple[Message, ...], tuple[Message, ...], str, str, str], ...] = (
    (said(FINE), said(OTHER), "", "", ""),
    (said(""), said(OTHER), f"{LENGTH}(chosen)", "text_len below 1", '{"chosen__text_len": 0}'),
    (said(FINE), said(""), f"{LENGTH}(rejected)", "text_len below 1", '{"rejected__text_len": 0}'),
    (said("ok"), said(OTHER), "", "", ""),
    (said(" ".join(MANY)), said(" ".join(OTHERS)), "", "", ""),
    (said("ab" * 16000 + " c"), said(OTHER), f"{LENGTH}(chosen)", "text_len above 32000",
     '{"chosen__text_len": 32002}'),
    (called("Write", "c" * 40_000), said("It is finished"), "", "", ""),
    (called("finish", "{}"), called("submit", "{}"), "", "", ""),
    (said("onewordonly"), said(OTHER), "", "", ""),
    (LS, called("Bash", '{"command": "ls -la"}'), "", "", ""),
    (said("ab ! cd ? == !!! ???"), said(OTHER), "", "", ""),
    (said("!!! ### $$$ %%% ab"), said(OTHER), f"{SPECIAL}(chosen)", "special_char_ratio above 0.8",
     '{"chosen__special_char_ratio": 0.8889}'),
    (said(FINE), said("??? !!! === ab"), f"{SPECIAL}(rejected)", "special_char_ratio above 0.8",
     '{"rejected__special_char_ratio": 0.8571}'),
    (LS, called("Bash", '{"command": "((((((((((((((((((((((((((((((((((((((("}'), "", "", ""),
    (said(FINE), said(FINE + " "), DIFFER, "condition not met", '{"general_field_filter_condition": false}'),
    (said("again and again it loops. " * 30), said(OTHER), f"{REPEATS}(chosen_said)",
     "word_rep_ratio above 0.5", '{"chosen_said__word_rep_ratio": 1}'),
    (said(OTHER), said("again and again it loops. " * 30), f"{REPEATS}(rejected_said)",
     "word_rep_ratio above 0.5", '{"rejected_said__word_rep_ratio": 1}'),
    (said("I look.\n\nHuman: go on\n"), said(OTHER), f"{TURNS}(chosen_said)", "turns above 1",
     '{"chosen_said__turns": 2}'),
    (said(FINE), (*said(OTHER), *said("And again.")), f"{TURNS}(rejected_said)", "turns above 1",
     '{"rejected_said__turns": 2}'),
    (said("Done: nothing is left."), said("Done.\n<|im_start|>user go"), f"{TURNS}(rejected_said)",
     "turns above 1", '{"rejected_said__turns": 2}'),
    (called("Bash", GREP), called("Bash", GREP.replace("lantern", "lanterns")), "", "", ""),
    (called("Edit", LONG_EDIT), called("Edit", OTHER_EDIT), "", "", ""),
    (said(f"{ANSWER}."), said(f"{ANSWER}!"), SIMILAR, "similarity above 0.95",
     '{"chosen_rejected__similarity": 0.9962}'),
    (said(" ".join(MANY[:300])), said(OTHER), RATIO, "length_ratio above 3",
     '{"chosen_rejected__length_ratio": 5.995}'),
    (called("Bash", " ".join(MANY[300:600])), said(OTHER), "", "", ""),
)  # fmt: skip


@pytest.fixture(scope="module")
def pairs() -> list[DPOPair]:
    return [pair(number, chosen, rejected) for number, (chosen, rejected, *_) in enumerate(CASES)]


@pytest.fixture(scope="module")
def normalized(pairs: list[DPOPair], tmp_path_factory: pytest.TempPathFactory) -> NormalizedPairs:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        result = DJNormalizer().normalize(pairs)
    assert list(home.iterdir()) == []
    return result


def test_every_case_is_judged_as_written(pairs: list[DPOPair], normalized: NormalizedPairs) -> None:
    verdicts = {d.pair.step_id: (d.operator, d.reason, d.value) for d in normalized.dropped}
    expected = {p.step_id: case[2:] for p, case in zip(pairs, CASES, strict=True) if case[2]}
    assert verdicts == expected
    assert [k.pair.step_id for k in normalized.kept] == [
        p.step_id for p in pairs if p.step_id not in expected
    ]


def test_the_counts_are_those_of_the_rows(normalized: NormalizedPairs) -> None:
    assert [(c.operator, c.rows_in, c.dropped, c.errors) for c in normalized.counts] == [
        (f"{LENGTH}(chosen)", 25, 2, 0),
        (f"{LENGTH}(rejected)", 23, 1, 0),
        (f"{SPECIAL}(chosen)", 22, 1, 0),
        (f"{SPECIAL}(rejected)", 21, 1, 0),
        (f"{REPEATS}(chosen_said)", 20, 1, 0),
        (f"{REPEATS}(rejected_said)", 19, 1, 0),
        (f"{TURNS}(chosen_said)", 18, 1, 0),
        (f"{TURNS}(rejected_said)", 17, 2, 0),
        (DIFFER, 15, 1, 0),
        (SIMILAR, 14, 1, 0),
        (RATIO, 13, 1, 0),
        ("document_deduplicator(preference)", 12, 0, 0),
    ]
    assert len(normalized.kept) == 12


def test_a_kept_pair_carries_both_shapes(pairs: list[DPOPair], normalized: NormalizedPairs) -> None:
    kept = {k.pair.step_id: k for k in normalized.kept}["trace-9:0:0"]
    assert kept.chosen_text == "Bash command: ls"
    assert kept.rejected_text == "Bash command: ls -la"
    assert kept.pair is pairs[9]
    assert kept.recipe == normalized.recipe == f"default-{normalized.fingerprint[:12]}"


def test_no_pairs_start_no_process() -> None:
    result = DJNormalizer(timeout_s=0.0).normalize([])  # a process would be too slow for that
    assert (result.kept, result.dropped) == ([], [])
    assert result.counts[0] == OperatorCount("side_length_filter(chosen)", 0, 0, 0)
    assert len(result.counts) == 12


TEXTS = (
    FINE,
    OTHER,
    FINE.upper(),
    "two words",
    "\ud800 half a pair",
    "\x00\x01 control",
    "",
    "é" * 9,
    "先に",
)


def test_every_pair_comes_out_once() -> None:
    coin = random.Random(20261121)
    signs = [*map(chr, range(0x250)), "\ud800", "\u2028", "\U0001f600"]
    texts = [*TEXTS, *("".join(coin.choices(signs, k=coin.randrange(40))) for _ in range(200))]
    rows = [(coin.choice(texts), coin.choice(texts), coin.random() < 0.5) for _ in range(600)]
    pairs = [
        pair(n, called("Bash", chosen) if call else said(chosen), said(rejected))
        for n, (chosen, rejected, call) in enumerate(rows)
    ]
    result = DJNormalizer().normalize(pairs)
    out = [k.pair.step_id for k in result.kept] + [d.pair.step_id for d in result.dropped]
    assert sorted(out) == sorted(p.step_id for p in pairs)
    assert sum(c.dropped for c in result.counts) == len(result.dropped)
    assert result.counts[0].rows_in == len(pairs)
    for before, after in zip(result.counts, result.counts[1:], strict=False):
        assert after.rows_in == before.rows_in - before.dropped


def test_a_repair_and_a_verified_pair_are_never_too_similar() -> None:
    """The same sides that only speak: teachers who agree may not prefer one, a repair may."""
    near = replace(pair(0, said(f"{ANSWER}."), said(f"{ANSWER}!")), step_id="a:0:0")
    rows = [
        near,
        replace(near, step_id="b:0:0", label_source="hindsight"),
        replace(near, step_id="c:0:0", verified="execution"),
    ]
    result = DJNormalizer().normalize(rows)
    assert [k.pair.step_id for k in result.kept] == ["b:0:0", "c:0:0"]
    assert [(d.pair.step_id, d.operator) for d in result.dropped] == [("a:0:0", SIMILAR)]


def test_duplicates_have_the_same_state_and_the_same_sides(tmp_path: Path) -> None:
    """Copies of a session and two label sources at one step; not the same preference in another state."""
    one = replace(pair(1, said(FINE), said(OTHER)), state_key="s1")
    rows = [
        one,
        replace(one, label_source="hindsight"),
        replace(one, step_id="copy:0:0"),
        replace(one, step_id="elsewhere:0:0", state_key="s2"),
        replace(one, step_id="copy:0:1", rejected=said("I guess, and edit at once.")),
        pair(2, said(FINE), said(OTHER)),
        replace(pair(2, said(FINE), said(OTHER)), label_source="hindsight"),
        pair(3, said(FINE), said(OTHER)),
    ]
    result = DJNormalizer(cache_dir=tmp_path / "cache").normalize(rows)
    assert [k.pair.pair_id for k in result.kept] == [rows[n].pair_id for n in (0, 3, 4, 5, 7)]
    assert {(d.operator, d.reason) for d in result.dropped} == {
        ("document_deduplicator(preference)", "repeats an earlier row")
    }
    assert [(d.pair.pair_id, json.loads(d.value)) for d in result.dropped] == [
        ("trace-1:0:0:hindsight", {"first": "trace-1:0:0:teachers"}),
        ("copy:0:0:teachers", {"first": "trace-1:0:0:teachers"}),
        ("trace-2:0:0:hindsight", {"first": "trace-2:0:0:teachers"}),
    ]
    assert (tmp_path / "cache").is_dir()


if REAL:

    def test_repairs_of_edits_in_real_sessions_stay() -> None:
        """Most of them change one place of a long argument and repeat the rest."""
        traces = [trace for source in discover([Path(REAL)]) for trace in ingest_source(source)[0]]
        pairs = [pair for trace in traces for pair in hindsight_pairs(trace)[0]]
        result = DJNormalizer().normalize(pairs)
        edits = [pair for pair in pairs if pair.rejected_operation == pair.chosen_operation == "edit"]
        kept = {item.pair.step_id for item in result.kept}
        assert len(edits) >= 9
        assert [pair.step_id for pair in edits if pair.step_id not in kept] == []
