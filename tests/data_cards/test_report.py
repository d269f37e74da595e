"""The report: figures from the tables, a page that no text of a session can break, a size that holds."""

import base64
import hashlib
import io
import json
import random
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tracemill.cli.report_output import print_figures
from tracemill.data_cards.card.audit_card import put_on_card
from tracemill.data_cards.model.audit_sample import (
    draw_audit_sample,
    read_audit,
    write_audit,
)
from tracemill.data_cards.model.manifest import Manifest, read_manifest
from tracemill.data_cards.model.release_spec import (
    OperatorDrops,
    ReleaseSpec,
    RunFigures,
    SavedCost,
    TeacherFigures,
)
from tracemill.data_cards.model.report_model import REPORT_JSON, REPORT_PAGE, read_figures
from tracemill.data_cards.report.agreement_matrix import STUDENT, tally_votes
from tracemill.data_cards.report.example_rows import LENGTHS, ROOM_CHARS, read_example_rows
from tracemill.data_cards.report.figures import build_figures
from tracemill.data_cards.report.write_report import (
    report_code_markup,
    report_name_markup,
    write_report,
    write_report_from_folder,
)
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.records.errors import ReleaseError, WorkspaceError
from tracemill.records.message import Message, Role, ToolCall
from tracemill.records.packed_json import pack_json, unpack_json_text
from tracemill.records.pair import DPOPair, DroppedPair, NormalizedDPOPair, StepVotes, Vote
from tracemill.records.wilson_interval import wilson_interval

HOSTILE = (
    "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> javascript:alert(3) "
    "\u202eevil\u202c \x1b[31m \x00 & \u2028 שלום"
)
RUN = RunFigures(
    run_id="r",
    asked=3,
    answered=3,
    questions=7,
    answers=6,
    left_over=2,
    projected_usd=0.5,
    pairs_made={"hindsight": 1, "teachers": 2},
    caching=SavedCost(usd=0.1, calls=2),
    stopping=SavedCost(usd=0.05, calls=1, steps=1),
    gate=SavedCost(usd=0.2, calls=4, steps=2),
    teachers=(
        TeacherFigures(
            name="a",
            calls=4,
            answered=3,
            failures={"timeout": 1},
            again={"rate_limited": 5},
            p50_s=2.0,
            p90_s=4.0,
        ),
        TeacherFigures(name="b", calls=3, answered=3, p50_s=1.0, p90_s=2.0, paid_usd=0.1),
    ),
)
SPEC = ReleaseSpec(
    name="reported",
    redaction="r1",
    created=datetime(2026, 11, 21, tzinfo=UTC),
    losses=(OperatorDrops(operator="words(chosen)", rows_in=4, dropped=1),),
    funnel={"traces": 2, "states": 9},
    spend_usd=0.4,
    cap_usd=1.0,
    run=RUN,
)


def vote(teacher: str, key: str, agrees: bool = False, operation: str = "read", **changes: Any) -> Vote:
    values: dict[str, Any] = {"teacher": teacher, "family": f"f{teacher}", "sample": 0, "counted": True}
    values |= {"reason": "", "key": key, "operation": operation, "agrees": agrees}
    return Vote(**(values | {"cost_usd": 0.1, "request_key": "q"} | changes))


def kept(number: int, text: str = "I read it first.", **changes: Any) -> NormalizedDPOPair:
    values: dict[str, Any] = {
        "step_id": f"claude_code-{number % 7}:0:{number}",
        "label_source": "teachers",
        "state_messages": (Message("system", "s"), Message("user", text), Message("assistant", text)),
        "tools": (),
        "chosen": (Message("assistant", text, (ToolCall("1", "Read", json.dumps({"path": text})),)),),
        "rejected": (Message("assistant", f"{number} {text}"),),
        "chosen_operation": "read",
        "rejected_operation": "edit",
        "source": "claude_code",
        "harness": "claude_code",
        "presentation": "p1",
        "student_model": "m",
        "student_family": "anthropic",
        "votes": (vote("a", "k", True), vote("b", "k", True)),
        "families": ("fa", "fb"),
        "n_teachers_agreeing": 2,
    }
    return NormalizedDPOPair(DPOPair(**(values | changes)), text, text, "r")


def released(folder: Path, pairs: Iterable[NormalizedDPOPair], spec: ReleaseSpec = SPEC, **more: Any) -> Path:
    dropped = more.pop("dropped", ())
    made = write_release(spec.model_copy(update={"views": ()}), pairs, dropped, folder, **more)
    assert isinstance(made, Release)
    return made.path


class Page(HTMLParser):
    """Elements and attributes of a page, and the text of each script."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
            self._in_script = True

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data


def test_figures_are_those_of_the_manifest(tmp_path: Path) -> None:
    gone = DroppedPair(kept(9).pair, "c", "say it", "words(chosen)", "too few", "1")
    votes = (vote("a", STUDENT), vote("b", "x", operation="run"))
    other = StepVotes("claude_code-1:0:50", "no_agreement", votes)
    path = released(tmp_path, [kept(1), kept(2, chosen_operation="vcs")], dropped=[gone], other_votes=[other])
    manifest, figures = read_manifest(path), read_figures(path)
    assert figures is not None
    assert figures.rows == manifest.rows == 2
    assert {f"{c.rejected} -> {c.chosen}": c.rows for c in figures.operations} == manifest.operations
    assert figures.votes == manifest.votes
    money = figures.money
    assert (money.spend_usd, money.cap_usd) == (manifest.spend_usd, manifest.cap_usd)
    assert money.usd_per_pair == manifest.usd_per_pair
    assert money.projected_usd == 0.5
    assert [(one.operator, one.rows_in, one.dropped) for one in figures.losses] == [("words(chosen)", 4, 1)]
    assert figures.losses[0].share == 0.25
    assert figures.losses[0].examples == ("claude_code-2:0:9: too few (1): say it",)
    counts = [(stage.name, stage.count) for stage in figures.funnel]
    assert counts[:4] == [("traces", 2), ("states", 9), ("asked", 3), ("answered", 3)]
    assert counts[4:] == [("votes", 4), ("pairs", 3), ("kept pairs", 2)]
    assert figures.funnel[-1].parts == manifest.label_sources
    page = (path / REPORT_PAGE).read_text()
    for shown in (
        "$0.4000",
        "$1.00",
        "<li>1 timeout</li>",
        "<li>5 rate limited</li>",
        "tried again",
        "pair, kept 2",
        "2.00 s",
        "words(chosen)".replace("(", "<wbr>("),
    ):
        assert shown in page, shown
    assert [one.usd for one in figures.dearest] == pytest.approx([0.4, 0.4])
    assert {one.trace_id: one.pairs for one in figures.dearest} == {"claude_code-1": 1, "claude_code-2": 1}


def test_agreement_counts_pairs_of_votes_once_a_step() -> None:
    def row(step: str, one: Vote) -> dict[str, Any]:
        told = ("teacher", "family", "counted", "key", "operation", "agrees", "cost_usd")
        return {"step_id": step, "verdict": "pair", **{name: getattr(one, name) for name in told}}

    rows = [
        row("t-1:0:0", vote("a", "k", True)),
        row("t-1:0:1", vote("a", STUDENT)),
        row("t-1:0:0", vote("b", "l", True)),
        row("t-1:0:1", vote("b", "n", operation="run")),
        row("t-1:0:1", vote("c", "", counted=False)),
        row("t-1:0:0", vote("a", "again", sample=1)),
    ]
    tally = tally_votes(rows)
    found = tally.agreement()
    assert {(a.one, a.other): (a.same, a.steps) for a in found.teachers} == {
        ("a", "b"): (1, 2),
        ("a", STUDENT): (1, 2),
        ("b", STUDENT): (0, 2),
    }
    assert [(a.one, a.other, a.same, a.steps) for a in found.families] == [("fa", "fb", 1, 2)]
    classes = {a.operation: (a.votes, a.same, a.same_class) for a in found.operations}
    assert classes == {"read": (3, 2, 2), "run": (1, 0, 0)}
    assert tally.counted_steps == tally.steps == 2
    assert tally.paid_usd == pytest.approx({"a": 0.3, "b": 0.2, "c": 0.1})


def test_no_text_of_a_session_becomes_markup_and_the_page_asks_for_nothing(tmp_path: Path) -> None:
    odd = kept(1, HOSTILE, repository=HOSTILE, evidence=HOSTILE, student_model=HOSTILE)
    votes = (vote(HOSTILE, HOSTILE, True, HOSTILE), vote("b", "k", counted=False, reason=HOSTILE))
    odd = NormalizedDPOPair(
        DPOPair(**{**{f: getattr(odd.pair, f) for f in DPOPair.__slots__}, "votes": votes}), "c", "r", "r"
    )
    gone = DroppedPair(kept(9, HOSTILE).pair, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    path = released(tmp_path, [odd, kept(2, rejected_operation=HOSTILE)], dropped=[gone])
    page = Page(path / REPORT_PAGE)
    plain = released(tmp_path / "plain", [kept(1), kept(2)])
    allowed = {tag for tag, _ in Page(plain / REPORT_PAGE).tags}
    assert {tag for tag, _ in page.tags} <= allowed | {"details", "summary", "wbr", "li", "ul"}
    assert len(page.scripts) == 3
    assert not {"img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in ("href", "src", "action"):
            target = attributes.get(name)
            assert target is None or target.startswith("#") or target == "data:,"
    packed = "".join(unpack_json_text(page.scripts[at], 10**8) or "" for at in (0, 2))
    _, chosen, _ = json.loads(unpack_json_text(page.scripts[2], 10**8) or "")["texts"][0]
    said = chosen[0]["text"]
    assert said.startswith("</script><script>alert(1)")
    assert "\\u202eevil" in said
    assert "\\x00" in said
    assert not re.search("[\x00-\x08\x1b\u202e]|\\\\u(0000|001b|202e)", packed.replace("\\\\", "?"))
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy is not None
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    before_data = (path / REPORT_PAGE).read_text().split('id="rows"')[0]
    assert not re.search(r"https?://|//cdn|@import|url\(", before_data)


WORDS = [f"{a}{b}" for a in ("lan", "mor", "ti", "ves", "qua", "dre") for b in ("tern", "row", "del", "sin")]


def long_pairs(count: int, messages: int = 30) -> Iterator[NormalizedDPOPair]:
    """Pairs of sessions of eight steps, whose contexts grow by two messages a step."""
    coin, context = random.Random(7), list[Message]()
    for number in range(count):
        trace, step = divmod(number, 8)
        if step == 0:
            context = [Message("system", f"You are {trace}."), Message("user", f"Task {trace}.")]
        while len(context) < messages + 2 * step:
            role: Role = "tool" if len(context) % 2 else "assistant"
            context.append(Message(role, f"{len(context)} " + " ".join(coin.choices(WORDS, k=300))))
        side = " ".join(coin.choices(WORDS, k=120))
        yield kept(
            number,
            side,
            step_id=f"claude_code-{trace:04}:0:{step}",
            state_messages=tuple(context),
            chosen=(Message("assistant", side),),
        )


def test_a_message_that_pairs_share_is_stored_once(tmp_path: Path) -> None:
    path = released(tmp_path, long_pairs(16))
    content = read_example_rows(path, read_manifest(path)).content
    assert len(content["messages"]) == 2 * (30 + 2 * 7)
    assert [row["context"] for row in content["rows"][:3]] == [[[0, 30]], [[0, 32]], [[0, 34]]]
    assert content["rows"][8]["context"] == [[44, 30]]
    assert content["messages"][1] == {"role": "user", "text": "Task 0."}


@pytest.mark.slow
@pytest.mark.long
def test_five_thousand_long_pairs_stay_under_three_megabytes(tmp_path: Path) -> None:
    path = released(tmp_path, long_pairs(5000))
    assert 1_500_000 < (path / REPORT_PAGE).stat().st_size < 3_000_000
    browsed = read_example_rows(path, read_manifest(path))
    rows = browsed.content["rows"]
    assert (len(rows), len({row["id"] for row in rows})) == (5000, 5000)
    assert browsed.statement.startswith("All 5,000 pairs, shown in part: of a context the task and the last ")
    assert "; each cut is marked. Everything is in the tables `dpo` and `votes`." in browsed.statement
    assert browsed.packed.chars <= ROOM_CHARS
    for row in rows:
        assert sum(n for _, n in row["context"]) == 30 + 2 * (int(row["id"].split(":")[2]))


def test_rows_without_room_are_left_out_and_said(tmp_path: Path) -> None:
    path = released(tmp_path, long_pairs(40))
    whole = read_example_rows(path, read_manifest(path))
    assert whole.statement == "All 40 pairs. Everything is in the tables `dpo` and `votes`."
    shorter = read_example_rows(path, read_manifest(path), room_chars=whole.packed.chars // 2)
    assert len(shorter.content["rows"]) == 40
    assert "shown in part" in shorter.statement
    few = read_example_rows(path, read_manifest(path), room_chars=4_000)
    names = [row["id"] for row in few.content["rows"]]
    assert 5 < len(names) < 40
    assert few.packed.chars <= 4_000
    assert few.statement.startswith(f"{len(names)} of 40 pairs, evenly spread, shown in part: ")
    order = [row["id"] for row in whole.content["rows"]]
    places = [order.index(name) for name in names]
    assert places == sorted(places)
    assert places[-1] > 30
    assert read_example_rows(path, read_manifest(path), room_chars=1).content["rows"] == []


def test_long_texts_are_cut_in_the_middle_and_say_so(tmp_path: Path) -> None:
    text = "a" * 500_000 + "z" * 500_000
    path = released(tmp_path, [kept(1, text)])
    browsed = read_example_rows(path, read_manifest(path))
    (row,) = browsed.content["rows"]
    side, context = LENGTHS[0].side, LENGTHS[0].context
    said = row["chosen"][0]["text"]
    mark = f"\n[... {1_000_000 - side:,} characters left out ...]\n"
    assert said == "a" * (side - side // 3) + mark + "z" * (side // 3)
    assert row["chosen"][0]["calls"] == [["Read", [["path", said]]]]
    assert len(browsed.content["messages"][1]["text"]) == context + len(mark)
    assert f"of a message {context:,} characters, of a text of a side {side:,}" in browsed.statement
    assert (path / REPORT_PAGE).stat().st_size < 120_000


def test_a_cut_never_parts_a_placeholder(tmp_path: Path) -> None:
    side = LENGTHS[0].side
    text = "x" * (side - side // 3 - 10) + "<GITHUB_TOKEN_3f2ac91d>" + "y" * side
    path = released(tmp_path, [kept(1, text)])
    (row,) = read_example_rows(path, read_manifest(path)).content["rows"]
    head = row["chosen"][0]["text"].partition("\n[... ")[0]
    assert head == "x" * (side - side // 3 - 10)


def test_calls_of_both_sides_are_keys_and_texts(tmp_path: Path) -> None:
    long = {"k": ["v" * 90, "w"]}
    call = ToolCall("1", "Edit", json.dumps({"path": "a.py", "lines": [1, 2], "deep": long}))
    raw = ToolCall("2", "Bash", "not {json")
    path = released(tmp_path, [kept(1, chosen=(Message("assistant", "", (call, raw)),))])
    (row,) = read_example_rows(path, read_manifest(path)).content["rows"]
    deep = json.dumps(long, indent=2)
    edit = ["Edit", [["path", "a.py"], ["lines", "[1, 2]"], ["deep", deep]]]
    assert row["chosen"] == [{"role": "assistant", "calls": [edit, ["Bash", "not {json"]]}]
    assert (row["agreement"], row["decides"], row["trace"]) == ("2 of 2 votes", 1, "claude_code-1")


def test_a_page_without_its_script_shows_the_first_pairs(tmp_path: Path) -> None:
    call = ToolCall("1", "Edit", json.dumps({"path": "a.py", "text": "<b>bold</b>\nx = 1"}))
    pairs = [kept(number, f"side {number}") for number in range(1, 9)]
    pairs[0] = kept(0, chosen=(Message("assistant", "I edit.", (call,)),))
    page = (released(tmp_path, pairs) / REPORT_PAGE).read_text()
    [plain] = re.findall("<noscript>(.*?)</noscript>", page, re.DOTALL)
    assert plain.count("<article") == 5
    assert "Edit\npath: a.py\ntext: &lt;b&gt;bold&lt;/b&gt;\nx = 1" in plain
    assert [number for number in range(1, 9) if f"side {number}" in plain] == [2, 3, 4, 5]


def test_packed_json_is_read_back_whole_or_not_at_all() -> None:
    value = {"text": "<a> " * 1000, "rows": [1, None, "שלום"]}
    packed = pack_json(value)
    assert packed == pack_json(value)
    assert max(map(len, packed.split("\n"))) == 24
    assert json.loads(unpack_json_text(packed, 10_000) or "") == value
    assert unpack_json_text(packed, 1000) is None
    for broken in ("", "?", packed[:40], "AAAA"):
        assert unpack_json_text(broken, 10_000) is None


def test_a_release_without_teachers_and_without_its_run_has_a_report(tmp_path: Path) -> None:
    alone = kept(1, label_source="hindsight", votes=(), families=(), n_teachers_agreeing=0)
    bare = {"run": None, "cap_usd": None, "spend_usd": 0.0, "losses": (), "funnel": {}}
    spec = SPEC.model_copy(update=bare)
    path = released(tmp_path, [alone], spec)
    page = (path / REPORT_PAGE).read_text()
    assert "was not kept with this release" not in page
    assert read_figures(path) == build_figures(path, read_manifest(path), None)


def test_a_report_has_no_section_on_what_nobody_was_asked_about(tmp_path: Path) -> None:
    asked = (released(tmp_path / "asked", [kept(n) for n in range(4)]) / REPORT_PAGE).read_text()
    alone = [
        kept(n, label_source="hindsight", votes=(), families=(), n_teachers_agreeing=0) for n in range(2)
    ]
    run = RunFigures(run_id="r", asked=0, answered=0, questions=0, answers=0, pairs_made={"hindsight": 2})
    bare = {"run": run, "cap_usd": None, "spend_usd": 0.0}
    path = released(tmp_path / "alone", alone, SPEC.model_copy(update=bare))
    page = (path / REPORT_PAGE).read_text()
    for name in ("agreement", "teachers", "money", "traces"):
        assert f'<section id="{name}"' in asked
        assert f'href="#{name}"' in asked
        assert f'id="{name}"' not in page
        assert f'href="#{name}"' not in page
    for name in ("pairs", "operations", "funnel", "losses"):
        assert f'<section id="{name}"' in page
    assert page.count("<section") == page.count("</section>") == page.count('<li><a href="#') == 4
    assert "steps asked" not in page
    assert "No teacher was asked: the pairs come from the sessions themselves." in page
    assert "a kept pair" not in page
    figures = read_figures(path)
    assert figures is not None
    assert [stage.name for stage in figures.funnel] == ["traces", "states", "pairs", "kept pairs"]
    out = io.StringIO()
    print_figures(Console(file=out, width=100), figures, None)
    said = out.getvalue()
    assert "cost" not in said
    assert "teachers" not in said


def test_the_report_is_written_again_from_the_release_alone(tmp_path: Path) -> None:
    path = released(tmp_path, [kept(n) for n in range(4)])
    first = {name: (path / name).read_bytes() for name in (REPORT_JSON, REPORT_PAGE)}
    (path / REPORT_PAGE).unlink()
    write_report_from_folder(path)
    assert {name: (path / name).read_bytes() for name in first} == first
    (path / REPORT_JSON).write_text('{"schema_version": 2}')
    with pytest.raises(ReleaseError, match=r"report\.json cannot be read"):
        write_report_from_folder(path)


@pytest.mark.parametrize("harm", ["gone", "empty", "other rows"])
def test_a_report_wants_every_table_as_it_was_written(tmp_path: Path, harm: str) -> None:
    path = released(tmp_path, [kept(n) for n in range(4)])
    page = (path / REPORT_PAGE).read_bytes()
    table = path / "data" / "dpo" / "train-00000-of-00001.parquet"
    if harm == "other rows":
        pq.write_table(pq.read_table(table).slice(0, 2), table)
    else:
        table.write_bytes(b"")
    if harm == "gone":
        table.unlink()
    with pytest.raises(ReleaseError) as caught:
        write_report_from_folder(path)
    said = "is missing" if harm == "gone" else "was changed"
    assert str(caught.value).endswith(
        f"{table} {said}; expected the release as it was written; write the release again"
    )
    assert (path / REPORT_PAGE).read_bytes() == page


def test_figures_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    path = released(tmp_path, [kept(1)])
    (path / REPORT_JSON).write_text("{")
    with pytest.raises(ReleaseError) as caught:
        write_report_from_folder(path)
    assert str(caught.value) == (
        f"{path / REPORT_JSON} cannot be read; expected the figures of a release of this version; remove it"
    )


def test_figures_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    path = released(tmp_path, [kept(1)])
    (path / REPORT_JSON).unlink()
    (path / REPORT_JSON / "in the way").mkdir(parents=True)  # as a read-only disk is, also to root
    with pytest.raises(WorkspaceError, match="cannot be written"):
        write_report(path, read_manifest(path), None)


def test_an_audit_is_drawn_by_its_seed_and_kept(tmp_path: Path) -> None:
    names = [f"p{n}" for n in range(200)]
    audit = draw_audit_sample(names, "f", 7)
    assert draw_audit_sample(list(reversed(names)), "f", 7) == audit != draw_audit_sample(names, "f", 8)
    assert len(set(audit.pair_ids)) == 50
    for at, name in enumerate(audit.pair_ids[:10]):
        audit = audit.with_verdict(name, "reject" if at == 3 else "accept")
    write_audit(tmp_path, audit)
    assert read_audit(tmp_path, "f") == audit
    found = audit.precision(200)
    assert found is not None
    assert (found.judged, found.accepted, found.precision) == (10, 9, 0.9)
    assert (found.low, found.high) == wilson_interval(9, 10)
    whole = (
        draw_audit_sample(names[:2], "f", 1)
        .with_verdict("p0", "accept")
        .with_verdict("p1", "accept")
        .precision(2)
    )
    assert whole is not None
    assert (whole.low, whole.high) == (1.0, 1.0)
    with pytest.raises(ReleaseError, match="belongs to other rows"):
        read_audit(tmp_path, "g")


def test_what_an_audit_found_stands_on_card_and_page(tmp_path: Path) -> None:
    path = released(tmp_path, [kept(n) for n in range(60)])
    manifest: Manifest = read_manifest(path)
    card = (path / "README.md").read_text()
    assert "Nobody has looked at a sample" in card
    audit = draw_audit_sample(
        [f"claude_code-{n % 7}:0:{n}:teachers" for n in range(60)], manifest.content_fingerprint, 1
    )
    for name in audit.pair_ids:
        audit = audit.with_verdict(name, "accept")
    write_audit(path, audit)
    found = audit.precision(60)
    assert found is not None
    for _ in range(2):
        put_on_card(path, found)
        write_report_from_folder(path)
    said = "50 of 50 pairs accepted: precision 1.00 (95 %: 0.93 to 1.00; seed 1)"
    assert (path / "README.md").read_text().count(said) == 1
    assert said in (path / REPORT_PAGE).read_text()
    assert "Nobody has looked" not in (path / "README.md").read_text()


def test_names_break_where_they_may_and_ticks_become_code() -> None:
    assert report_name_markup("a/b<(c)") == "a/<wbr>b&lt;<wbr>(c)"
    assert report_code_markup("take `<b>` now") == "take <code>&lt;b&gt;</code> now"
