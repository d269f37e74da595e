"""The publish gate on a whole release: plants behind ingest in every kind of place, found and refused."""

import html
import json
import os
import random
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from leak_corpus import RECORDS, Case, cases
from release_rows import SPEC, TOOLS, hindsight, normalized, pair, vote

from tracemill.data_cards.card.render_card import cell_of_lines
from tracemill.data_cards.model.columns import storage_column_schema
from tracemill.data_cards.model.release_spec import DropExample, OperatorDrops
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.publish.publish_gate import make_gate
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.publish_gate.decoded_texts import load_decoded_json
from tracemill.privacy.publish_gate.findings import Finding
from tracemill.privacy.publish_gate.gate import PublishGate
from tracemill.privacy.publish_gate.kingfisher import VARIABLE, find_kingfisher
from tracemill.privacy.publish_gate.scan_paths import Scanner
from tracemill.privacy.redaction.known_secrets import KNOWN_SECRETS, KnownSecrets
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.errors import PrivacyError
from tracemill.records.message import Message, ToolCall, ToolSpec, render_turn
from tracemill.records.packed_json import pack_json, unpack_json_text
from tracemill.records.pair import DroppedPair, StepVotes
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Context, Step, Trace
from tracemill.records.views import CandidateAction, SoftStep, StepOrigin

KEY = b"k" * 32
KINGFISHER = ["none"] + ["installed"] * (find_kingfisher(os.environ) is not None)
ROWS = 24
PERSONAL = ("personal", "labelled")
ALL, OF_MISSED = 0.97, 0.9  # shares that are found: of all plants, of those that ingest's rules miss


class Plant(NamedTuple):
    """A text with private parts; `missed` where ingest's rules leave one of them."""

    group: str
    text: str
    parts: tuple[str, ...]
    missed: bool

    @property
    def personal(self) -> bool:
        """Tell whether it is somebody's data and no secret."""
        return self.group in PERSONAL


class Lines(NamedTuple):
    """Where a plant stands in a text file."""

    first: int
    last: int


@dataclass(frozen=True)
class Planted:
    """A plant in a release: kind of place, file, and the row and column or the lines that hold it."""

    place: str
    plant: Plant
    file: str
    row: int | None = None
    column: str = ""
    lines: Lines | None = None
    document: int = 0
    """The line of the page that holds the document of which the place is a part; 0 where that is the file."""

    def is_around(self, found: Finding) -> bool:
        """Return whether a finding is of the whole document that this place is in."""
        there = found.file == self.file and self.column != "" and not found.column
        return there and self.document in (0, found.line)

    def holds(self, found: Finding) -> bool:
        """Return whether a finding stands in this place."""
        if found.file != self.file or found.row != self.row:
            return False
        if self.lines is not None:
            return self.lines.first <= (found.line or 0) <= self.lines.last
        return found.column.startswith(self.column)


class Cell(NamedTuple):
    """A kind of place in a table: its config, the way to it in a row, and what is written there."""

    config: str
    way: tuple[str | int, ...]
    written: Callable[[str], Any] = str


def column_of(way: Sequence[str | int]) -> str:
    """Return the name of a place as findings say it."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in way)[1:]


def _arguments(text: str) -> dict[str, Any]:
    return {"cmd": f"cd app\n{text}", "timeout": 3}


def _call(arguments: Any) -> str:
    function = {"name": "Bash", "arguments": arguments}
    return json.dumps({"id": "c1", "type": "function", "function": function}, ensure_ascii=False)


def _turn(text: str) -> str:
    return render_turn((Message("assistant", "I run it.", (_tool_call(text),)),))


def _tool_call(text: str) -> ToolCall:
    return ToolCall("c1", "Bash", json.dumps(_arguments(text)))


def _wire(text: str) -> str:
    return json.dumps([Message("assistant", "I run it.", (_tool_call(text),)).to_wire()])


def _schema(text: str) -> str:
    return json.dumps(ToolSpec("Bash", f"Runs.\n{text}", {"type": "object"}).to_wire())


CELLS = {
    "prompt: user": Cell("dpo", ("prompt", 1, "content")),
    "prompt: tool result": Cell("dpo", ("prompt", 3, "content"), lambda text: f"$ make\n{text}\nexit 0\n"),
    "prompt: arguments": Cell("dpo", ("prompt", 2, "tool_calls", 0), lambda t: _call(_arguments(t))),
    "chosen: text": Cell("dpo", ("chosen", 0, "content"), lambda text: f"I look first.\n{text}"),
    "chosen: arguments": Cell("dpo", ("chosen", 0, "tool_calls", 0), lambda t: _call(_arguments(t))),
    "rejected: arguments as text": Cell(
        "kto", ("completion", 0, "tool_calls"), lambda t: [_call(json.dumps(_arguments(t)))]
    ),
    "chosen_wire": Cell("dpo", ("chosen_wire",), _wire),
    "tools": Cell("dpo", ("tools", 0), _schema),
    "evidence": Cell("sft", ("evidence",), lambda text: f"call failed: {text}"),
    "calls as text": Cell(
        "dpo_json", ("chosen", 0, "tool_calls"), lambda t: f"[{_call(_arguments(t))}, {_call({})}]"
    ),
    "flat prompt": Cell("prm", ("prompt",), lambda text: f"[tool]\n{text}\n[assistant]\n"),
    "flat turn": Cell("prm", ("completions", 0), _turn),
    "privileged context": Cell("hints", ("privileged_context",), lambda t: f"It failed:\n{t}\n\nDone."),
    "dropped: text": Cell("dropped", ("rejected_text",), _turn),
    "votes: key": Cell("votes", ("key",), lambda text: f"run:{text}"),
    "votes: reason": Cell("votes", ("reason",), lambda text: f"no valid call: {text}"),
    "reply: text": Cell("soft", ("candidates", 1, "completion", 0, "content"), lambda t: f"I would.\n{t}"),
    "reply: arguments": Cell(
        "soft", ("candidates", 0, "completion", 0, "tool_calls", 0), lambda t: _call(_arguments(t))
    ),
}
FILES = ("card: text", "card: table", "report: pairs", "report: losses", "report.json")
JSON_FILES: dict[str, Callable[[str], Any]] = {
    "json file: string": lambda text: {"files": [{"path": "x", "content": text}]},
    "json file: JSON in a string": lambda text: {"call": json.dumps({"content": text})},
    "json file: document": lambda text: load_decoded_json(text) or {"notes": [text]},
}


def draw_plants(secrets: KnownSecrets, rng: random.Random) -> list[Plant]:
    """Return plants of every native form, tokens in their settings, bare values that sessions gave away,
    values in words that redaction's rules leave, and personal data. Groups lie together, so that each is
    dealt to every place."""
    redactor, clean = Redactor(key=KEY), Redactor(key=KEY)
    drawn = rng.sample(list(cases(17, 1, "shape")), 60)
    for group, times in (("session", 11), ("missed", 12), ("native", 1), *((group, 2) for group in PERSONAL)):
        some = list(cases(17, times, group))
        drawn += rng.sample(some, len(some))
    for case in drawn:
        if case.group == "session":
            redactor.redact_trace(_trace(case))
    secrets.add(redactor.pop_found_secrets())
    return [
        Plant(group, text, parts, any(part in clean.redact_text(text)[0] for part in parts))
        for group, _, _, (text, parts) in drawn
    ]


def _trace(case: Case) -> Trace:
    [value] = case.planted.parts
    messages = (Message("user", "Go on."), Message("assistant", f"DB_PASSWORD={value}\n"))
    return Trace(value, "openhands", "openhands", "openhands", (Context(0, messages, (Step(0, 1),)),))


def write_clean_release(folder: Path) -> Path:
    """Write a release with rows in every config that a plant goes to."""
    origin = StepOrigin("openhands-1", "openhands", "openhands", "p1", None, "unknown")
    said = [Message("assistant", "I look.", (ToolCall("c1", "Bash", '{"cmd": "ls"}'),))]
    candidates = (CandidateAction(said[0], "run", ("qwen-a",)), CandidateAction(said[0], "run", ("zai-a",)))
    state = (Message("system", "You are an agent."), Message("user", "Fix the bug."))
    soft = [
        SoftStep(origin, f"openhands-1:0:{n}", state, TOOLS, "no_agreement", candidates, -1, 0.25)
        for n in range(ROWS)
    ]
    example = DropExample(pair_id="p", reason="too few words", value="1", chosen="say it", rejected="do")
    losses = (OperatorDrops(operator="words(chosen)", rows_in=ROWS + 1, dropped=1, examples=(example,)),)
    made = write_release(
        SPEC.model_copy(update={"losses": losses}),
        normalized(*map(pair, range(ROWS)), hindsight(ROWS)),
        [DroppedPair(pair(90 + n), "x", "y", "words(chosen)", "too few words", "1") for n in range(ROWS)],
        folder,
        [StepVotes("claude_code-0099:0:1", "no_agreement", (vote("qwen-a", True),))],
        steps=soft,
    )
    assert isinstance(made, Release)
    return made.path


def plant_all(release: Path, plants: Sequence[Plant]) -> list[Planted]:
    """Deal the plants over all places of a release."""
    kinds = [*CELLS, *FILES, *JSON_FILES]
    dealt = {kind: plants[at :: len(kinds)] for at, kind in enumerate(kinds)}
    done = []
    by_config = defaultdict(list)
    for kind, cell in CELLS.items():
        by_config[cell.config].append(kind)
    for config, names in by_config.items():
        done += _plant_table(release, f"data/{config}/train-00000-of-00001.parquet", names, dealt)
    done += _plant_card(release, dealt["card: text"], dealt["card: table"])
    done += _plant_report(release, dealt["report: pairs"], dealt["report: losses"])
    done += _plant_figures(release, dealt["report.json"])
    for kind, written in JSON_FILES.items():
        for plant in dealt[kind]:
            path = release / f"notes-{len(done)}.json"
            path.write_text(json.dumps(written(plant.text), indent=2))
            done.append(Planted(kind, plant, path.name))
    return done


def _plant_table(
    release: Path, file: str, kinds: Sequence[str], dealt: dict[str, Sequence[Plant]]
) -> list[Planted]:
    path = release / file
    schema = pq.read_schema(path)
    rows = pq.read_table(path).cast(storage_column_schema(schema)).to_pylist()
    done = []
    for kind in kinds:
        _, way, written = CELLS[kind]
        for number, plant in enumerate(dealt[kind]):
            holder: Any = rows[number]
            for key in way[:-1]:
                holder = holder[key]
            holder[way[-1]] = written(plant.text)
            done.append(Planted(kind, plant, file, number, column_of(way)))
    pq.write_table(pa.Table.from_pylist(rows, schema=storage_column_schema(schema)).cast(schema), path)
    return done


def _plant_card(release: Path, texts: Sequence[Plant], cells: Sequence[Plant]) -> list[Planted]:
    card = release / "README.md"
    lines = card.read_text().splitlines()
    done = []
    for plant in texts:
        lines += ["", "## Notes", "", "```"]
        first = len(lines) + 1
        lines += [*plant.text.split("\n"), "```", ""]
        done.append(Planted("card: text", plant, card.name, lines=Lines(first, len(lines) - 2)))
    lines += ["", "| row | value | chosen |", "|---|---|---|"]
    for number, plant in enumerate(cells):
        lines.append(f"| p{number} | 3 | {cell_of_lines(plant.text)} |")
        done.append(Planted("card: table", plant, card.name, lines=Lines(len(lines), len(lines))))
    card.write_text("\n".join(lines) + "\n")
    return done


def _plant_report(release: Path, pairs: Sequence[Plant], losses: Sequence[Plant]) -> list[Planted]:
    page = release / "report.html"
    head, data, tail = re.split(
        r'(?<=id="texts">)(.*?)(?=</script>)', page.read_text(), maxsplit=1, flags=re.S
    )
    embedded, done = json.loads(unpack_json_text(data, 10**8) or ""), list[Planted]()
    for number, plant in enumerate(pairs):
        text = f"I run it.\n{plant.text}"
        if number % 4 < 2:
            embedded["texts"][number][1 + number % 4][0]["text"] = text
            column = f"texts[{number}][{1 + number % 4}][0].text"
        else:
            column = f"messages[{len(embedded['messages'])}].text"
            embedded["messages"].append({"role": "user", "text": text})
        done.append(Planted("report: pairs", plant, page.name, column=column))
    items, first = [], head[: head.index('<section id="losses"')].count("\n") + 1
    data_line = head.count("\n") + 1 + sum(html.escape(plant.text).count("\n") + 1 for plant in losses)
    done = [replace(each, document=data_line) for each in done]
    for plant in losses:
        item = f'<li dir="auto">{html.escape(plant.text)}</li>\n'
        last = first + item.count("\n") - 1
        done.append(Planted("report: losses", plant, page.name, lines=Lines(first, last)))
        items.append(item)
        first = last + 1
    at = head.index('<section id="losses"')
    at = head.rindex("\n", 0, at) + 1
    page.write_text(head[:at] + "".join(items) + head[at:] + pack_json(embedded) + tail)
    return done


def _plant_figures(release: Path, plants: Sequence[Plant]) -> list[Planted]:
    path = release / "report.json"
    figures = json.loads(path.read_text())
    [loss] = figures["losses"]
    loss["examples"] = [plant.text for plant in plants]
    path.write_text(json.dumps(figures, indent=2) + "\n")
    return [
        Planted("report.json", plant, path.name, column=f"losses[0].examples[{number}]")
        for number, plant in enumerate(plants)
    ]


class Releases(NamedTuple):
    """A release as it was written, and the same with plants in it."""

    work: Workspace
    clean: Path
    release: Path
    planted: list[Planted]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    folder = tmp_path_factory.mktemp("gate")
    work = Workspace.open(folder / "w")
    secrets = KnownSecrets(work.root / KNOWN_SECRETS, workspace_key(work.root / "redaction.key"))
    clean = write_clean_release(folder / "releases")
    release = Path(shutil.copytree(clean, folder / "planted"))
    return Releases(work, clean, release, plant_all(release, draw_plants(secrets, random.Random(23))))


@pytest.fixture
def gate(case: Releases, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PublishGate:
    """The gate as `tracemill release publish` makes it, without or with kingfisher."""
    if request.param == "none":
        monkeypatch.setenv(VARIABLE, "none")
    return make_gate(load_settings(None, {"workspace": str(case.work.root)}), case.work)


def test_a_text_that_is_a_json_document_is_judged_as_one(tmp_path: Path) -> None:
    """What the names of a document say of each other gives its values away: the gate finds as many as ingest
    takes out, numbers too, and what it says of a string is its own place."""
    redactor = Redactor(key=KEY)
    drawn = [each.planted for each in cases(29, 6, "native", "personal", "labelled")]
    documents = [each for each in drawn if each.text[:1] == "{" and load_decoded_json(each.text)]
    table = pa.Table.from_pylist([{"content": each.text} for each in documents])
    pq.write_table(table, tmp_path / "a.parquet")
    findings = Scanner(make_known([]), KEY, {VARIABLE: "none"}).scan(tmp_path).findings
    found = Counter(found.row for found in findings)
    passed: list[str] = []
    earlier: set[str] = set()
    for number, each in enumerate(documents):
        told = redactor.redact_text(each.text)[0]
        taken = sum(part not in told and part not in earlier for part in each.parts)
        earlier.update(each.parts)  # a value under one name counts once in a file
        passed += [each.text] if found[number] < taken else []
    assert len(documents) >= 90
    assert passed == []
    places = {(found.column, found.rule) for found in findings}
    assert {("content.d", "PRIVATE_KEY"), ("content.data.one", "SECRET"), ("content", "LOCATION")} <= places


@pytest.mark.parametrize("gate", KINGFISHER, indirect=True)
def test_plants_are_found_in_every_place_of_a_release(gate: PublishGate, case: Releases) -> None:
    assert gate.judge(case.clean).accepted == 0
    findings = gate.scanner.scan(case.release).findings
    stray = [f for f in findings if not any(p.holds(f) or p.is_around(f) for p in case.planted)]
    assert [found.text() for found in stray] == []
    of, found = Counter[Any](), Counter[Any]()
    passed = []
    for planted in case.planted:
        there = any(map(planted.holds, findings))
        personal, missed = planted.plant.personal, planted.plant.missed
        for name in (planted.place, (personal, "all"), *([(personal, "missed")] if missed else ())):
            of[name] += 1
            found[name] += there
        passed += [] if there else [(planted.place, planted.plant.text)]
    places = [*CELLS, *FILES, *JSON_FILES]
    assert min(of[place] for place in places) >= 14
    for personal in (False, True):
        assert of[personal, "missed"] >= 20
        assert found[personal, "all"] >= ALL * of[personal, "all"], passed
        assert found[personal, "missed"] >= OF_MISSED * of[personal, "missed"], passed
    assert [(place, found[place], of[place]) for place in places if found[place] < 0.9 * of[place]] == []


@pytest.mark.parametrize("place", ["column", "key", "cell"])
def test_a_name_says_that_its_value_is_somebodys(tmp_path: Path, place: str) -> None:
    """Values alone, in columns, JSON files and tables of the card."""
    drawn = {(name, make(random.Random(f"{name} {n}"))) for name, make in RECORDS.items() for n in range(5)}
    release = tmp_path / "r"
    release.mkdir()
    for number, (name, value) in enumerate(sorted(drawn)):
        if place == "column":
            pq.write_table(pa.table({name: [value], "note": ["x"]}), release / f"{number}.parquet")
        elif place == "key":
            (release / f"{number}.json").write_text(json.dumps({"rows": [{name: value}]}))
        else:
            (release / f"{number}.md").write_text(f"| {name} | x |\n|---|---|\n| {value} | y |\n")
    secrets = KnownSecrets(tmp_path / "none", KEY)
    findings = Scanner(make_known([]), KEY, {VARIABLE: "none"}, secrets).scan(release).findings
    found = {int(Path(each.file).stem) for each in findings}
    passed = [each for number, each in enumerate(sorted(drawn)) if number not in found]
    assert len(drawn) >= 80
    assert len(passed) <= 0.05 * len(drawn), passed


def test_any_one_finding_refuses_a_release_until_it_is_accepted(
    case: Releases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "none")
    settings = load_settings(None, {"workspace": str(case.work.root)})
    gate = replace(make_gate(settings, case.work), record=case.work.root / "all.json")
    findings = gate.scanner.scan(case.release).findings
    with pytest.raises(PrivacyError, match="the release is refused") as caught:
        gate.judge(case.release)
    told = str(caught.value)
    assert not [part for each in case.planted for part in each.plant.parts if part in told]
    marks = [found.fingerprint for found in findings]
    one = next(
        found for found in findings if found.file == "report.html" and marks.count(found.fingerprint) == 1
    )
    rest = replace(gate, accept=set(marks) - {one.fingerprint}, record=case.work.root / "rest.json")
    with pytest.raises(PrivacyError, match="the release is refused: 1 private value in 1 place") as caught:
        rest.judge(case.release)
    assert one.where() in str(caught.value)
    assert replace(gate, accept=marks).judge(case.release).accepted == len(set(marks))
