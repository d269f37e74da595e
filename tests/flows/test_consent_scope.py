"""What a consent covers: every project a session worked in, at one server, and nothing that reads alike."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tracemill.cli.commands import was_interrupted
from tracemill.flows.admission.redaction_setup import make_redactor
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent import build_consent_request, load_consents, require_consent
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.errors import PrivacyError, WorkspaceError
from tracemill.records.message import Message
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace

ROOT = Path(__file__).resolve().parents[2]
ALMANAC = next((ROOT / "examples" / "sessions" / "claude_code").glob("*almanac/*.jsonl"))
SERVER = "http://192.0.2.7:8000/v1"  # TEST-NET-1: nobody is there


def settings_of(folder: Path, base_url: str = SERVER, **more: object) -> RunSettings:
    teachers = [
        {"type": "openai_compatible", "model": f"{family}/m", "base_url": base_url}
        for family in ("deepseek", "moonshotai", "z-ai")
    ]
    given = {"workspace": folder / "w", "teachers": teachers, "budget": {"max_total_usd": 1}, **more}
    return RunSettings.model_validate(given)


def make_trace(name: str, *cwds: str | None, parent: str | None = None, **fields: object) -> Trace:
    messages = (Message("user", "x" * 100), *(Message("assistant", "y") for _ in cwds))
    steps = tuple(Step(i, i + 1, cwd=cwd) for i, cwd in enumerate(cwds))
    context = (Context(0, messages, steps),)
    given = {"parent_trace_id": parent, "kind": "side" if parent else "main", **fields}
    return Trace(name, "claude_code", "claude_code", "claude_code", context, **given)  # type: ignore[arg-type]


class Place:
    """A workspace that asks for consent to traces as recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = settings_of(folder)
        self.work = Workspace.open(self.settings.workspace)
        self.redactor = make_redactor(self.work)

    def entries(self, traces: Sequence[Trace]) -> list[TraceEntry]:
        return [TraceEntry.of(self.redactor.redact_trace(trace)[0]) for trace in traces]

    def asks(self, *traces: Trace, settings: RunSettings | None = None) -> list[str]:
        """What is asked for, a line a project; nothing where all of it was accepted."""
        request = build_consent_request(
            settings or self.settings, self.entries(traces), load_consents(self.work)
        )
        return [f"{p}: {a.sessions} {a.states}" for p, a in request.projects.items()] if request else []

    def accept(self, *traces: Trace) -> None:
        accepted = require_consent(self.work, self.settings, "run", self.entries(traces), yes=True)
        assert accepted == {trace.trace_id for trace in traces}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_consent_for_one_project_does_not_cover_a_session_that_also_worked_in_another(place: Place) -> None:
    place.accept(make_trace("t1", "/work/alpha", "/work/alpha/src"))
    assert place.asks(make_trace("t2", "/work/alpha/docs", project="alpha")) == []
    moved = make_trace("t3", "/work/alpha", "/work/topsecret", "/work/alpha/src", "/work/topsecret/x")
    assert place.asks(moved) == ["topsecret (/work/topsecret): 1 4"]
    with pytest.raises(
        PrivacyError, match=r"1 session \(0.00 MB\) of topsecret would go to 3 models at http"
    ):
        require_consent(place.work, place.settings, "run", place.entries([moved]), yes=False)
    place.accept(make_trace("t4", "/work/topsecret"))
    assert place.asks(moved) == []


def test_a_session_counts_under_each_project_and_once_in_all(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.accept(make_trace("t1", "/work/alpha", "/work/topsecret"), make_trace("t2", "/work/alpha"))
    said = capsys.readouterr().err.splitlines()
    assert said[1:5] == [
        "  alpha (/work/alpha): 2 sessions, 3 steps, 0.00 MB",
        "  topsecret (/work/topsecret): 1 session, 2 steps, 0.00 MB",
        "  in total: 2 sessions, 3 steps, 0.00 MB",
        "  (a session of several projects counts under each)",
    ]
    (consent,) = json.loads((place.work.root / "consents.json").read_text())["consents"]
    assert {project["name"] for project in consent["projects"]} == {"alpha", "topsecret"}


def test_a_subagent_is_part_of_its_session_also_where_it_worked_alone(place: Place) -> None:
    traces = [
        make_trace("t1", "/work/alpha"),
        make_trace("t2", "/work/beta", "/work/beta", parent="t1"),
        make_trace("t3", "/work/beta", parent="t2"),
        make_trace("t4", "/work/beta", parent="not in this workspace"),
    ]
    assert place.asks(*traces) == ["alpha (/work/alpha): 1 1", "beta (/work/beta): 2 4"]


def test_two_people_whose_folders_read_alike_are_asked_for_apart(place: Place) -> None:
    one, two = make_trace("t1", "/Users/gundobald/webshop"), make_trace("t2", "/Users/kunigund/webshop")
    place.accept(one)
    assert place.asks(one) == []
    assert place.asks(two) == ["webshop (/Users/user/webshop): 1 1"]
    for path in place.work.root.rglob("*.json"):
        assert b"gundobald" not in path.read_bytes()


def test_a_folder_with_a_redacted_name_is_one_line_for_all_its_sessions(place: Place) -> None:
    folder = "/work/kim" + "@" + "northwind.io/api"
    traces = [make_trace("t1", folder), make_trace("t2", folder), make_trace("t3", folder, parent="t2")]
    assert place.asks(*traces) == ["api (/work/<EMAIL>/api): 2 3"]


def test_sessions_without_a_folder_are_an_item_of_their_own(place: Place) -> None:
    place.accept(make_trace("t1", None), make_trace("t2", "", ""))
    assert place.asks(make_trace("t3", None)) == []
    assert place.asks(make_trace("t4", "/")) == ["/ (/): 1 1"]
    assert place.asks(make_trace("t5", None, repository="own/name")) == ["own/name: 1 1"]
    assert [str(p) for c in load_consents(place.work) for p in c.projects] == [
        "claude_code, no folder recorded"
    ]


def test_what_has_no_projects_was_never_accepted(place: Place) -> None:
    (entry,) = place.entries([make_trace("t1", "/work/alpha")])
    unknown = TraceEntry("t2", "t2", (), 1, 1, 100, 0)
    assert require_consent(place.work, place.settings, "run", [entry, unknown], yes=True) == {"t1"}


@pytest.mark.parametrize(
    "other",
    [
        "https://192.0.2.7:8000/v1",
        "http://192.0.2.7:8001/v1",
        "http://192.0.2.7/v1",
        "http://192.0.2.8:8000/v1",
    ],
)
def test_another_scheme_port_or_host_is_another_destination(place: Place, other: str) -> None:
    trace = make_trace("t1", "/work/alpha")
    place.accept(trace)
    assert place.asks(trace, settings=settings_of(place.folder, SERVER.replace("/v1", "/elsewhere"))) == []
    assert place.asks(trace, settings=settings_of(place.folder, other)) == ["alpha (/work/alpha): 1 1"]


def test_consents_of_an_older_schema_are_asked_for_again(place: Place) -> None:
    to = {"host": "192.0.2.7", "model": "deepseek/m", "provider": "any", "data_collection": "unstated"}
    old = {"date": "2026-01-01T00:00:00Z", "how": "asked", "redaction": "r2", "destinations": [to]}
    old["projects"] = [["alpha", "/work/alpha"]]
    path = place.work.root / "consents.json"
    path.write_text(json.dumps({"schema": 1, "consents": [old]}))
    trace = make_trace("t1", "/work/alpha")
    assert place.asks(trace) == ["alpha (/work/alpha): 1 1"]
    place.accept(trace)
    kept = json.loads(path.read_text())
    assert (kept["schema"], len(kept["consents"]), len(kept["consents"][0]["projects"])) == (3, 1, 1)
    path.write_text(json.dumps(kept | {"schema": 4}))
    with pytest.raises(WorkspaceError, match="schema 4"):
        load_consents(place.work)


def test_what_the_selection_matched_nothing_with_is_said_before_the_send(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    line, entries = (
        "nothing matches deny_projects = 'alhpa'",
        place.entries([make_trace("t1", "/work/alpha")]),
    )
    with pytest.raises(PrivacyError):
        require_consent(place.work, place.settings, "run", entries, False, [line])
    assert capsys.readouterr().err == f"{line}\n"
    require_consent(place.work, place.settings, "run", entries, True, [line])
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == [line, "This run would send, redacted:"]
    assert json.loads((place.work.run_dir("run") / "consent.json").read_text())["unmatched"] == [line]
    require_consent(place.work, place.settings, "run", entries, False, [line])
    assert capsys.readouterr().err == f"{line}\n"


def write_session(path: Path, cwds: Sequence[str]) -> None:
    """The example session, its steps spread evenly over these folders, in their order."""
    records = [json.loads(line) for line in ALMANAC.read_text().splitlines()]
    for number, record in enumerate(records):
        if "cwd" in record:
            record["cwd"] = cwds[number * len(cwds) // len(records)]
        if "sessionId" in record:
            record["sessionId"] = path.stem
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(record) for record in records))


def test_a_recorded_session_that_moved_is_refused_from_its_file_to_its_replay(tmp_path: Path) -> None:
    write_session(tmp_path / "s" / "one.jsonl", ["/Users/gundobald/alpha", "/Users/gundobald/topsecret"])
    settings = settings_of(tmp_path, select={"deny_projects": ["alhpa"]})
    order = IngestOptions(order_of([str(tmp_path / "s")]), settings.workspace, settings.select)
    totals = ingest_everything(order)["totals"]
    assert totals["selection"] == ["nothing matches deny_projects = 'alhpa'"]
    work = Workspace.open(settings.workspace, create=False)
    (trace,) = (trace for table in work.current("traces") for trace in traces_from_table(table))
    assert [str(p) for p in trace.worked_in] == [
        "alpha (/Users/user/alpha)",
        "topsecret (/Users/user/topsecret)",
    ]
    with pytest.raises(PrivacyError, match=r"1 session \(0.01 MB\) of alpha, topsecret would go to 3 models"):
        replay_workspace(settings)


def test_an_interrupt_is_found_behind_what_came_of_it() -> None:
    def report() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("the server is gone")

    with pytest.raises(OSError, match="gone") as caught:
        report()
    assert was_interrupted(caught.value)
    assert not was_interrupted(OSError("the server is gone"))
