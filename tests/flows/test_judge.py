"""A judge over a socket: asked both ways round where votes make no pair, under the cap, once measured."""

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset
from typer.testing import CliRunner

from tracemill.cli.main import app
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.judge_setup import NOT_MEASURED, judge_key, read_precisions, write_precision
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import label_workspace, release_workspace, replay_workspace
from tracemill.pairs.judge import ORDERS, JudgePrecision, judge_message, judge_verdict, prefers_proposal
from tracemill.records.message import Action, ToolCall
from tracemill.records.reply import TeacherReply
from tracemill.records.storage.table_rows import replies_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")
JUDGE = "moonshotai/kimi-k3"
KNOWN = JudgePrecision(("t.jsonl",), 100, 45, 5, 2, 0.7864, 0.9566)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k-judge")
    with running(StubSettings(api_key="k-judge", keep_bodies=True)) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples, ingested under one key: the stub answers to the text it is shown."""
    Workspace.open(tmp_path / "w")
    (tmp_path / "w" / "redaction.key").write_text(bytes(range(32)).hex())
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), tmp_path / "w"))
    return tmp_path / "w"


def settings_of(workspace: Path, url: str, cap: float = 5.0, judge: bool = True) -> RunSettings:
    models = [{"type": "openrouter", "base_url": url, "local": True, "model": m} for m in (*MODELS, JUDGE)]
    given: dict[str, Any] = {"workspace": str(workspace), "teachers": models[:3]}
    given |= {"budget": {"max_total_usd": cap}} | (
        {"judge": models[3] | {"max_tokens": 500}} if judge else {}
    )
    return load_settings(None, given)


def judged(workspace: Path) -> list[TeacherReply]:
    tables = Workspace.open(workspace, create=False).current("replies")
    return [r for table in tables for r in replies_from_table(table) if "(judge" in r.teacher]


def verdicts(workspace: Path) -> Counter[str]:
    tables = Workspace.open(workspace, create=False).current("votes")
    return Counter(step.verdict for table in tables for step in votes_from_table(table))


def asked_of_judge(server: RunningStubServer) -> list[str]:
    """The last message of every request to the judge."""
    bodies = [json.loads(body) for body in server.server.bodies]
    return [body["messages"][-1]["content"] for body in bodies if body["model"] == JUDGE]


def test_a_judge_without_a_measured_precision_is_not_asked_and_said_so(
    folder: Path, server: RunningStubServer
) -> None:
    settings = settings_of(folder, server.url)
    assert estimate_cost(settings).judge == f"{JUDGE}: {NOT_MEASURED}"
    record = replay_workspace(settings, yes=True)
    assert record["summary"]["judge"] == f"{JUDGE}: {NOT_MEASURED}"
    assert judged(folder) == []
    assert asked_of_judge(server) == []
    made = label_workspace(settings).to_json()
    assert not [name for name in made["pairs"] if name.startswith("judge")]
    assert made["pair_skips"]["judge: the judge's precision is not measured"] > 5


def test_a_judge_that_may_be_no_better_than_chance_is_not_asked(
    folder: Path, server: RunningStubServer
) -> None:
    settings = settings_of(folder, server.url)
    assert settings.judge is not None
    write_precision(folder, settings.judge, JudgePrecision(("t.jsonl",), 160, 22, 17, 23, 0.4096, 0.7082))
    record = replay_workspace(settings, yes=True)
    assert record["summary"]["judge"].endswith(
        "39 known cases (t.jsonl): not asked, it may be no better than chance"
    )
    assert asked_of_judge(server) == []
    made = label_workspace(settings).to_json()
    assert made["pair_skips"]["judge: the judge is not known to be better than chance"] > 5


def test_it_is_asked_in_both_orders_where_votes_make_no_pair_and_pays_nothing_twice(
    folder: Path, server: RunningStubServer
) -> None:
    settings = settings_of(folder, server.url)
    assert settings.judge is not None
    replay_workspace(settings_of(folder, server.url, judge=False), yes=True)
    label_workspace(settings)
    before = verdicts(folder)
    write_precision(folder, settings.judge, KNOWN)
    said = r"; at most (\d+) calls, \$(\d+\.\d+), under the same cap"
    most = re.search(said, estimate_cost(settings).judge)
    assert most is not None
    summary = replay_workspace(settings, yes=True)["summary"]
    assert int(most[1]) == 2 * sum(before.values())
    assert 0 < summary["calls"] < int(most[1])
    assert 0 < summary["spent_usd"] < float(most[2])
    left = re.search(said, estimate_cost(settings).judge)
    assert left is not None
    assert int(left[1]) == int(most[1]) - 2 * len({reply.step_id for reply in judged(folder)})
    assert summary["judge"] == f"{JUDGE}: right in 0.90 (0.79 to 0.96) of 50 known cases (t.jsonl)"
    answers = judged(folder)
    first, second = ([r for r in answers if r.teacher.endswith(f"{order})")] for order in ORDERS)
    assert 0 < len(first) <= before["no_agreement"] + before["dead_zone"]
    preferred = {r.step_id for r in first if prefers_proposal(r.action, ORDERS[0])}
    assert 0 < len(preferred) < len(first)
    assert {r.step_id for r in second} == preferred
    assert summary["spent_usd"] == pytest.approx(sum(r.cost_usd for r in answers))

    asked = asked_of_judge(server)
    sides = Counter(
        tuple(sorted(text.split("\n\nA:\n")[1].split("\n\nWhich")[0].split("\n\nB:\n"))) for text in asked
    )
    assert len(asked) == len(answers)
    assert sum(count >= 2 for count in sides.values()) > 0

    made = label_workspace(settings).to_json()
    assert verdicts(folder) == before  # no answer of the judge is a vote
    agreed = {r.step_id for r in second if prefers_proposal(r.action, ORDERS[1])}
    pairs = sum(count for name, count in made["pairs"].items() if name.startswith("judge: "))
    assert pairs == len(agreed) > 0
    reasons = {name: count for name, count in made["pair_skips"].items() if name.startswith("judge: ")}
    assert pairs + sum(reasons.values()) == before["no_agreement"] + before["dead_zone"]
    assert reasons.get("judge: the judge's answer depends on the order", 0) == len(preferred) - len(agreed)
    rows = [
        row
        for table in Workspace.open(folder, create=False).current("pairs")
        for row in table.to_pylist()
        if row["label_source"] == "judge"
    ]
    assert {row["weight"] for row in rows} == {0.7864}
    assert all(row["simulated"] and row["cost_usd"] > 0 for row in rows)
    assert "prefers it in both orders; the judge was right in 0.90" in rows[0]["evidence"]

    release = release_workspace(settings)
    assert release.path is not None
    card = (Path(release.path) / "README.md").read_text()
    frame = load_dataset(release.path, "dpo", split="train")
    sources = Counter(frame["label_source"])
    assert sources["judge"] > 0
    assert f"| judge | {sources['judge']} | teachers did not agree" in card
    weights = {row["weight"] for row in frame if row["label_source"] == "judge"}
    assert weights == {0.7864}
    assert {row["weight"] for row in frame if row["label_source"] == "teachers"} == {1.0}

    replay_workspace(settings, yes=True)
    assert asked_of_judge(server) == asked  # its answers are cached like all answers


def test_the_cap_of_the_run_holds_for_the_judge_too(folder: Path, server: RunningStubServer) -> None:
    replay_workspace(
        settings_of(folder, server.url, judge=False), yes=True
    )  # a run of its own, and its answers
    cap = 0.03
    settings = settings_of(folder, server.url, cap=cap)
    assert settings.judge is not None
    write_precision(folder, settings.judge, KNOWN)
    record = replay_workspace(settings, yes=True)
    assert record["summary"]["spent_usd"] <= cap
    assert record["at_cap"]
    assert record["summary"]["left_over"] > 0
    assert record["summary"]["stopped"]
    some = len(judged(folder))
    replay_workspace(settings_of(folder, server.url), yes=True)  # a raised cap asks the rest
    assert len(judged(folder)) > some


def table_of(path: Path, rows: int) -> Path:
    """A table of four models of four families that never agree, rewarded by chance."""
    rng, models = random.Random(3), ("gpt-4o", "claude-3-opus", "gemini-1.5-pro", "llama-3-70b")
    with path.open("w") as out:
        for number in range(rows):
            acts = {
                model: {
                    "tool_calls": [
                        {"name": "look_up", "arguments": json.dumps({"word": f"{model} {number}"})}
                    ],
                    "reward": rng.choice((0.0, 1.0)),
                }
                for model in models
            }
            messages = [{"role": "user", "content": f"Look up the word of day {number}."}]
            tools = [
                {
                    "name": "look_up",
                    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
                }
            ]
            row = {"state_id": f"s{number}", "messages": messages, "tools": tools, "actions": acts}
            out.write(json.dumps(row) + "\n")
    return path


def test_its_precision_is_measured_on_a_table_and_printed_before_it_may_vote(
    tmp_path: Path, server: RunningStubServer
) -> None:
    settings = settings_of(tmp_path / "w", server.url)
    assert settings.judge is not None
    config = tmp_path / "run.toml"
    config.write_text(
        f'workspace = "w"\n[budget]\nmax_total_usd = 1\n'
        f'[judge]\ntype = "openrouter"\nmodel = "{JUDGE}"\nmax_tokens = 500\n'
        f'base_url = "{server.url}"\nlocal = true\n'
    )
    table = table_of(tmp_path / "t.jsonl", 40)
    arguments = ["judge", str(table), "--config", str(config), "--cases", "60", "--json"]
    first = json.loads(CliRunner().invoke(app, arguments).stdout)
    found = first["precision"]
    assert found["asked"] == 60
    assert found["right"] + found["wrong"] >= 10
    assert found["right"] + found["wrong"] + found["ties"] <= 60
    assert first["calls"] == len(asked_of_judge(server))
    assert 60 < first["calls"] < 120
    assert first["spent_usd"] > 0
    again = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert (again["calls"], again["cached"]) == (0, first["calls"] + first["cached"])
    assert again["precision"] == found
    assert again["spent_usd"] == first["spent_usd"]
    kept = read_precisions(tmp_path / "w")
    assert bool(kept) == first["measured"] == (found["right"] + found["wrong"] >= 30)
    arguments[-2:] = ["300"]
    text = CliRunner().invoke(app, arguments).stdout
    assert "right in 0." in text
    assert judge_key(settings.judge) in read_precisions(tmp_path / "w")


def test_the_same_two_actions_are_asked_about_in_both_orders_and_read_back() -> None:
    own, other = Action("", (ToolCall("1", "bash", '{"command": "ls"}'),)), Action("I stop here.")
    one, two = (judge_message(other, own, order).content for order in ORDERS)
    assert 'A:\nI stop here.\n\nB:\nbash {"command": "ls"}\n\n' in one
    assert 'A:\nbash {"command": "ls"}\n\nB:\nI stop here.\n\n' in two
    a, b, n = Action("A"), Action("**B.** It reads first."), Action("N")
    assert [prefers_proposal(a, order) for order in ORDERS] == [True, False]
    assert [prefers_proposal(b, order) for order in ORDERS] == [False, True]
    assert prefers_proposal(n, ORDERS[0]) is prefers_proposal(own, ORDERS[0]) is None
    assert prefers_proposal(Action("Answering is hard"), ORDERS[0]) is None
    assert judge_verdict([a, b]) == ""
    assert judge_verdict([a, a]) == "the judge's answer depends on the order"
    assert judge_verdict([b]) == "the judge prefers the agent's action"
    assert judge_verdict([n]) == "the judge prefers neither"
    assert judge_verdict([a, None]) == judge_verdict([None]) == "no answer of the judge"
