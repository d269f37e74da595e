"""The user's own lists as part of a consent: what lets more through asks again, what lets less does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.admission.list_scope import ListScope, widest_list_scope
from tracemill.flows.admission.privacy_settings import PrivacySettings
from tracemill.flows.admission.redaction_setup import list_scope, make_redactor, make_trace_filter
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent import load_consents, require_consent
from tracemill.flows.ingest.ingest_shard import ShardIngester
from tracemill.flows.sources.shard_plan import plan_sources
from tracemill.flows.sources.source_spec import order_of
from tracemill.records.errors import PrivacyError
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
TEACHERS = [{"type": "openai_compatible", "model": "m", "base_url": "http://gpu.example:8000/v1"}]


class Taken:
    """A workspace into which the examples are taken under some lists, and asked about."""

    def __init__(self, folder: Path) -> None:
        self.work = Workspace.open(folder / "w")

    def take(self, **privacy: Any) -> list[TraceEntry]:
        lists = PrivacySettings.model_validate(privacy)
        redactor, trace_filter = make_redactor(self.work, lists), make_trace_filter(None, self.work)
        reredactor = Reredactor.of(self.work, redactor, list_scope(self.work, lists))
        ingester = ShardIngester(self.work, reredactor, trace_filter, 16e6)
        plan = plan_sources(order_of([str(SESSIONS)], min_age_minutes=0), 16)
        done = [ingester.ingest(files, {}.get) for files in plan.shards]
        for each in done:
            self.work.add("traces", each.shards)
        return [entry for each in done for entry in each.entries.values()]

    def require(self, entries: list[TraceEntry], yes: bool = False) -> None:
        settings = RunSettings.model_validate({"teachers": TEACHERS})
        assert len(require_consent(self.work, settings, "run-1", entries, yes)) == 3


@pytest.fixture
def taken(tmp_path: Path) -> Taken:
    return Taken(tmp_path)


def test_an_entry_that_is_allowed_later_asks_again_and_is_named_nowhere(taken: Taken) -> None:
    taken.require(taken.take(redact=["seedling"]), yes=True)
    taken.require(taken.take(redact=["seedling"]))
    wider = taken.take(redact=["seedling"], allow=["a-word-of-mine"])
    with pytest.raises(PrivacyError, match=r"and .privacy. allows more than was accepted"):
        taken.require(wider)
    taken.require(wider, yes=True)
    taken.require(taken.take(redact=["seedling"]))
    written = b"".join(path.read_bytes() for path in taken.work.root.rglob("*.json"))
    assert b"a-word-of-mine" not in written
    assert [(len(c.lists.allowed), len(c.lists.listed)) for c in load_consents(taken.work)] == [
        (0, 1),
        (1, 1),
    ]


def test_an_entry_that_is_redacted_no_longer_asks_again_and_one_more_does_not(taken: Taken) -> None:
    taken.require(taken.take(redact=["seedling", "re:customs[0-9]"]), yes=True)
    taken.require(taken.take(redact=["seedling", "re:customs[0-9]", "falcon"]))
    with pytest.raises(PrivacyError, match="allows more than was accepted"):
        taken.require(taken.take(redact=["seedling"]))
    with pytest.raises(PrivacyError, match="allows more than was accepted"):
        taken.require(taken.take())


def test_a_secret_that_left_its_env_file_asks_again(taken: Taken, tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text("DB_PASSWORD=correct-horse-battery\nAPI_TOKEN=zzzz-yyyy-xxxx\n")
    taken.require(taken.take(env_files=[env]), yes=True)
    taken.require(taken.take(env_files=[env]))
    env.write_text("API_TOKEN=zzzz-yyyy-xxxx\n")
    with pytest.raises(PrivacyError, match="allows more than was accepted"):
        taken.require(taken.take(env_files=[env]))


def test_what_counts_is_what_the_text_was_redacted_under(taken: Taken) -> None:
    """Traces taken in again without the lists are not covered, whatever the configuration says."""
    strict, loose = taken.take(redact=["seedling"]), taken.take()
    taken.require(strict, yes=True)
    with pytest.raises(PrivacyError, match="allows more than was accepted"):
        taken.require([*strict[:2], loose[2]])


def test_projects_under_different_lists_are_accepted_each_under_its_own(taken: Taken) -> None:
    strict, loose = taken.take(redact=["seedling"]), taken.take(allow=["x1"])
    mixed = [e for e in strict if e.projects[0].name == "parcels"]
    mixed += [e for e in loose if e.projects[0].name == "almanac"]
    taken.require(mixed, yes=True)
    found = [({p.name for p in c.projects}, len(c.lists.allowed)) for c in load_consents(taken.work)]
    assert sorted(found, key=lambda each: each[1]) == [({"parcels"}, 0), ({"almanac"}, 1)]
    taken.require(mixed)


def test_a_consent_that_names_no_lists_is_no_consent(taken: Taken) -> None:
    entries = taken.take()
    taken.require(entries, yes=True)
    path = taken.work.root / "consents.json"
    value = json.loads(path.read_text())
    del value["consents"][0]["allowed"]
    path.write_text(json.dumps(value))
    with pytest.raises(Exception, match=r"consents\.json is damaged"):
        taken.require(entries)


def test_lists_that_grew_are_applied_again_to_what_is_stored(taken: Taken) -> None:
    """What `[privacy]` says now holds for text that was redacted before it said so, and nothing is let
    through that was not."""
    before = taken.take(redact=["seedling"], allow=["a-word"])
    stored = [trace for table in taken.work.current("traces") for trace in traces_from_table(table)]
    for lists, allowed, listed, parcel in (
        ({"redact": ["seedling"], "allow": ["a-word"]}, 1, 1, True),
        ({"allow": ["a-word", "more"]}, 1, 1, True),
        ({"redact": ["seedling", "parcel"], "allow": ["a-word"]}, 1, 2, False),
        ({"redact": ["seedling"]}, 0, 1, True),
    ):
        settings = RunSettings.model_validate({"privacy": lists})
        reredactor = make_reredactor(taken.work, settings)
        shown = [reredactor.redact_again(trace).trace for trace in stored]
        texts = "".join(m.content for t in shown for c in t.contexts for m in c.messages)
        assert ("parcel" in texts, "seedling" in texts) == (parcel, False)
        scopes = {ListScope.of_notes(trace.notes) for trace in shown}
        assert scopes == {entry.then(reredactor.lists).lists for entry in before}
        assert [(len(scope.allowed), len(scope.listed)) for scope in scopes] == [(allowed, listed)]
    assert [trace.trace_id for trace in shown] == [trace.trace_id for trace in stored]


def test_digests_need_the_key_and_the_widest_lets_most_through() -> None:
    lists = PrivacySettings(allow=("a", "b"), redact=("c", "d"))
    one, other = ListScope.of(lists, b"k" * 32), ListScope.of(lists, b"l" * 32)
    assert one != other
    assert ListScope.of_notes({"redacted:EMAIL": 3} | one.notes()) == one
    less = ListScope.of(PrivacySettings(allow=("a",), redact=("c",)), b"k" * 32)
    assert widest_list_scope([one, less]) == ListScope(one.allowed, less.listed)
    assert less.within(widest_list_scope([one, less]))
    assert not one.within(less)
