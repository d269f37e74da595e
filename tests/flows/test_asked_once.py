"""What is asked when the input changed, counted at the server: only what nobody has answered yet."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from teacher_chains import free_port

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.label_shard import ShownTrace
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.teacher_settings import PriceSettings
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
MODELS = ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a")
KEY = "sk-or-asked-once"


class Product:
    """Sessions of a folder, ingested and replayed into one workspace, against one server."""

    def __init__(self, folder: Path) -> None:
        self.sessions = shutil.copytree(SESSIONS, folder / "sessions")
        self.work = folder / "w"
        self.port = free_port()
        self.prices = PriceSettings.model_validate({"prompt_usd": 1, "completion_usd": 2})

    @property
    def session(self) -> Path:
        return next(self.sessions.glob("*almanac/*.jsonl"))

    def prompts(self) -> dict[str, str]:
        """The id of every prompt by step, as it would be asked now."""
        tables = Workspace.open(self.work, create=False).current("traces")
        shown = [ShownTrace.of(trace) for table in tables for trace in traces_from_table(table)]
        return {q.step_id: q.prompt_id for item in shown for q in item.questions()}

    def go(self) -> list[dict[str, Any]]:
        """Ingest, replay; gives the bodies of the requests for answers."""
        ingest_everything(IngestOptions(order_of(paths=[str(self.sessions)], min_age_minutes=0), self.work))
        wire = StubSettings(api_key=KEY, keep_bodies=True, models=dict.fromkeys(MODELS, self.prices))
        with running(wire, port=self.port) as server:
            replay_workspace(self._settings(server.url))
            assert server.stats()["received"] == len(server.server.bodies)
            return [json.loads(body) for body in server.server.bodies]

    def _settings(self, url: str) -> RunSettings:
        teachers = [
            {
                "type": "openrouter",
                "model": m,
                "base_url": url,
                "local": True,
                "max_tokens": 200,
                "temperature": 0,
            }
            for m in MODELS
        ]
        given = {"workspace": str(self.work), "teachers": teachers, "budget": {"max_total_usd": 5}}
        return load_settings(None, given | {"replay": {"stop": "off"}})


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Product:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    return Product(tmp_path)


def test_input_that_grew_asks_the_new_steps_alone_and_a_new_price_list_none(product: Product) -> None:
    whole = product.session.read_text().splitlines()
    product.session.write_text("\n".join(whole[:-12]) + "\n")
    first = product.go()
    before = product.prompts()
    assert len(first) == len(MODELS) * len(before)

    product.session.write_text("\n".join(whole) + "\n")
    again = product.go()
    after = product.prompts()
    new = {step for step, prompt_id in after.items() if before.get(step) != prompt_id}
    assert new == after.keys() - before.keys()  # what was there is as it was
    assert 0.05 < len(new) / len(after) < 0.15
    assert len(again) == len(MODELS) * len(new)
    seen = {json.dumps(body["messages"]) for body in first}
    assert not any(json.dumps(body["messages"]) in seen for body in again)

    product.prices = PriceSettings.model_validate({"prompt_usd": 3, "completion_usd": 4})
    assert product.go() == []


PLANTED = "a result that reads otherwise than it did"


def test_a_changed_message_asks_every_step_whose_prefix_holds_it_and_none_other(product: Product) -> None:
    product.go()
    before = product.prompts()
    records = [json.loads(line) for line in product.session.read_text().splitlines()]
    results = [r for r in records if r["type"] == "user" and isinstance(r["message"]["content"], list)]
    results[len(results) // 2]["message"]["content"][0]["content"] = PLANTED
    product.session.write_text("\n".join(map(json.dumps, records)) + "\n")
    again = product.go()
    after = product.prompts()
    changed = {step for step in after if before[step] != after[step]}
    assert after.keys() == before.keys()
    assert 3 < len(changed) < len(after) / 2
    assert len(again) == len(MODELS) * len(changed)
    assert all(PLANTED in json.dumps(body["messages"]) for body in again)
    (context,) = {step.rpartition(":")[0] for step in changed}
    kept = [step for step in after.keys() - changed if step.rpartition(":")[0] == context]
    assert max(map(_place, kept)) < min(map(_place, changed))


def _place(step_id: str) -> int:
    return int(step_id.rpartition(":")[2])
