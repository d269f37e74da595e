"""Text that later rules, or lists that grew, find more in: what was bought stays bought, and nothing of it is
sent or published any more. Real sessions, real SQLite, real HTTP on loopback."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from whole_records import whole_text

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.label_shard import load_traces
from tracemill.flows.release.load_pairs import load_pairs
from tracemill.flows.sources.shard_plan import UNCHANGED
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import label_workspace, release_workspace, replay_workspace
from tracemill.privacy.core.rule import make_probed_detector
from tracemill.privacy.core.user_lists import make_listed
from tracemill.privacy.redaction.redactor import TODAYS_RULES, Redactor, RuleSet
from tracemill.records.message import Message, ToolCall
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
CODENAME = "almanac"  # the project of one of the sessions, in its paths, commands and answers
OLD, NEW = (
    RuleSet("r4"),
    RuleSet("r5", (make_probed_detector(make_listed([CODENAME], "redact").find, CODENAME),)),
)
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")
KEY = "k-renewing-0123456789"
LATER = 6  # lines of that session which are written after the first run


class Place:
    """A folder of sessions, a workspace, and a server that teachers are asked at."""

    def __init__(self, folder: Path, server: RunningStubServer) -> None:
        self.folder, self.server = folder, server
        shutil.copytree(SESSIONS, folder / "sessions")
        (self.grows,) = (folder / "sessions").glob("*almanac/*.jsonl")
        self.whole = self.grows.read_text().splitlines(keepends=True)
        self.grows.write_text("".join(self.whole[:-LATER]))

    @property
    def work(self) -> Workspace:
        return Workspace.open(self.folder / "w", create=False)

    def settings(self, **more: Any) -> RunSettings:
        url = self.server.url
        teachers = [
            {"type": "openrouter", "model": m, "base_url": url, "local": True, "max_tokens": 500}
            for m in MODELS
        ]
        given = {"workspace": str(self.folder / "w"), "teachers": teachers, "budget": {"max_total_usd": 5}}
        return load_settings(None, given | {"replay": {"stop": "off", **more.pop("replay", {})}} | more)

    def read(self, rules: RuleSet = TODAYS_RULES, **more: Any) -> dict[str, int]:
        order = order_of([str(self.folder / "sessions")], min_age_minutes=0)
        totals = ingest_everything(IngestOptions(order, self.folder / "w", rules=rules, **more))["totals"]
        return totals["changes"]

    def ask(self, rules: RuleSet = TODAYS_RULES, **more: Any) -> list[str]:
        """The requests that a replay sends, as text; what they cost and nothing else is on the books."""
        before = len(self.server.server.bodies)
        summary = replay_workspace(self.settings(**more), rules=rules)["summary"]
        with closing(sqlite3.connect(self.work.ledger_path)) as ledger:
            ((booked_nanousd,),) = ledger.execute("select sum(cost_nusd) from calls").fetchall()
        assert booked_nanousd / 1e9 == pytest.approx(float(self.server.stats()["charged_usd"]), abs=1e-9)
        sent = [body.decode() for body in self.server.server.bodies[before:]]
        assert (summary["calls"], summary["failures"]) == (len(sent), {})
        return sent

    def pairs(self, rules: RuleSet = TODAYS_RULES, **more: Any) -> dict[str, str]:
        """The pairs made anew: each as stored, by its id."""
        label_workspace(self.settings(**more), rules)
        return {pair.pair_id: whole_text((pair.chosen, pair.rejected)) for pair in load_pairs(self.work)}

    def stored(self) -> str:
        """The messages of all traces of the workspace."""
        ids = frozenset().union(*(self.work.covers("traces", s) for s in self.work.live("traces")))
        traces = load_traces(self.work, sorted(ids))
        return "".join(whole_text(context.messages) for trace in traces for context in trace.contexts)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    with running(StubSettings(api_key=KEY, keep_bodies=True)) as server:
        yield Place(tmp_path, server)


def _of_teachers(pairs: Iterable[str]) -> set[str]:
    return {pair for pair in pairs if pair.endswith(":teachers")}


def holding(texts: Iterable[str]) -> int:
    return sum(CODENAME in text for text in texts)


def test_later_rules_ask_nobody_anew_and_hold_for_all_that_leaves(place: Place) -> None:
    place.read(OLD)
    first = place.ask(OLD)
    assert (len(first), holding(first)) == (3 * 33, 3 * 10)
    assert place.ask(OLD) == []
    before = place.pairs(OLD)
    assert holding(before.values()) > 0

    assert place.read(NEW) == {UNCHANGED: 3}
    assert place.ask(NEW) == []
    settings = place.settings()
    made = release_workspace(settings, NEW)  # of pairs that were made under the older rules
    assert made.path is not None
    files = [path for path in Path(made.path).rglob("*") if path.is_file()]
    rows = [row for path in files if path.suffix == ".parquet" for row in pq.read_table(path).to_pylist()]
    published = json.dumps(rows) + "".join(p.read_text() for p in files if p.suffix != ".parquet")
    assert made.rows > 10
    assert (CODENAME in published, "<LISTED_" in published, '"redaction": "r5"' in published) == (0, 1, 1)
    after = place.pairs(NEW)
    assert holding(after.values()) == 0
    assert _of_teachers(after) == _of_teachers(before) != set()


def test_a_session_that_grew_is_asked_about_at_its_new_steps_under_the_later_rules(place: Place) -> None:
    place.read(OLD)
    first, before = place.ask(OLD), place.stored()
    place.grows.write_text("".join(place.whole))
    assert place.read(NEW) == {UNCHANGED: 2, "grew": 1}
    sent = place.ask(NEW)
    assert (len(sent), holding(sent)) == (3, 0)
    assert all("<LISTED_" in body for body in sent)
    assert place.stored().count(CODENAME) == before.count(CODENAME)
    assert place.ask(NEW) == []

    assert place.read(NEW, reredact=True) == {"read again: settings or readers changed": 3}
    assert CODENAME not in place.stored()
    again = place.ask(NEW)  # the old text is gone: so are its answers
    assert (len(again), holding(again)) == (holding(first), 0)
    assert place.read(NEW, reredact=True) == {UNCHANGED: 3}


def test_where_the_source_is_gone_the_stored_text_is_asked_about_anew_when_told_to(place: Place) -> None:
    place.read(OLD)
    first = place.ask(OLD)
    shutil.rmtree(place.folder / "sessions")
    assert place.ask(NEW) == []
    again = place.ask(NEW, replay={"reredact": True})
    assert (len(again), holding(again)) == (holding(first), 0)
    assert place.ask(NEW) == place.ask(NEW, replay={"reredact": True}) == []


def test_a_list_that_grew_holds_for_what_is_stored_and_for_a_teacher_who_comes_later(place: Place) -> None:
    place.read()
    first = place.ask()
    lists = {"redact": [CODENAME]}
    assert place.ask(privacy=lists) == []
    assert holding(place.pairs(privacy=lists).values()) == 0
    teachers = [each.model_dump(mode="json") for each in place.settings().teachers]
    more = teachers[-1] | {"model": "moonshotai/kimi-k3", "name": "", "family": ""}
    sent = place.ask(privacy=lists, teachers=[*teachers, more])
    assert (len(sent), holding(sent)) == (len(first) // 3, 0)
    assert {json.loads(body)["model"] for body in sent} == {"moonshotai/kimi-k3"}


def test_what_a_teacher_repeats_of_the_older_text_is_taken_out_wherever_it_stands() -> None:
    """A rule may need surroundings that an answer does not give."""
    rules = RuleSet(
        "r5",
        (make_probed_detector(make_listed([r"re:(?<=badge )[A-Z]{3}-[a-z]{9}"], "redact").find, "badge "),),
    )
    said = Message("user", "my badge QXZ-heliotrop opens it")
    acted = Message("assistant", "", (ToolCall("c1", "Bash", '{"command": "open --with QXZ-heliotrop"}'),))
    context = Context(0, (said, acted), (Step(0, 1),))
    trace = Trace("claude_code-" + "0" * 20, "claude_code", "claude_code", "claude_code", (context,))
    stored, found = Redactor(rules=OLD).redact_trace(trace)
    assert (stored.contexts, found.total()) == (trace.contexts, 0)
    again = Redactor(rules=rules).redact_again(stored)
    (stand_in,) = re.findall(r"<LISTED_[0-9a-f]{8}>", again.trace.contexts[0].messages[0].content)
    told = again.message(replace(acted, content="QXZ-heliotrop it is"))
    assert told.content == f"{stand_in} it is"
    assert told.tool_calls[0].arguments == f'{{"command": "open --with {stand_in}"}}'
    assert (again.trace.redaction, again.trace.trace_id, again.found) == (
        "r5",
        stored.trace_id,
        {"LISTED": 1},
    )
