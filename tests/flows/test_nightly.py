"""A run night after night over sessions that grow, against a server that counts what it is asked."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, CompletedProcess

import hub_stub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from console_says import record_of

from tracemill.flows.sources.shard_plan import UNCHANGED
from tracemill.flows.sources.watermarks import FILE
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
KEY = "sk-or-test-only-0123456789"
Run = Callable[..., CompletedProcess[str]]


@pytest.mark.long
@pytest.mark.slow
def test_a_session_that_grew_is_asked_about_at_its_new_steps_alone(tracemill: Run, tmp_path: Path) -> None:
    """What was bought stays; what is free is as if the session had always been that long."""
    home, whole = tmp_path / "home", {}
    home.mkdir()
    for path in sorted((EXAMPLES / "claude_code").rglob("*.jsonl")):
        whole[path.name] = path.read_text().splitlines(keepends=True)
    for name, lines in whole.items():
        (home / name).write_text("".join(lines))
    grown, lines = max(whole.items(), key=lambda item: len(item[1]))
    (home / grown).write_text("".join(lines[: len(lines) * 9 // 10]))
    config = tmp_path / "run.toml"
    config.write_text("preset = 'open'\n[replay]\nstop = 'off'\n")
    flags = (config, "--claude-code", home, "-w", tmp_path / "w", "--max-usd", 50, "--json")
    with running(StubSettings(api_key=KEY)) as server:
        env = {"TRACEMILL_OPENROUTER_URL": server.url, "OPENROUTER_API_KEY": KEY}
        first = record_of(tracemill("run", *flags, "--yes", **env))["summary"]
        asked = server.stats()["paid"]
        (home / grown).write_text("".join(lines))
        second = record_of(tracemill("run", *flags, **env))["summary"]
        new = server.stats()["paid"] - asked
        third = record_of(tracemill("run", *flags, **env))["summary"]
        assert server.stats()["paid"] == asked + new
        fresh = [*flags[:4], tmp_path / "fresh", *flags[5:]]
        other = record_of(tracemill("run", *fresh, "--yes", **env))
    assert first["calls"] == asked
    assert second["changes"] == {UNCHANGED: len(whole) - 1, "grew": 1}
    assert second["states"] > first["states"]
    assert new == second["calls"] == second["asked"] - first["asked"] > 0
    assert second["reused"] == first["asked"]
    assert third["changes"] == {UNCHANGED: len(whole)}
    assert (third["calls"], third["reused"]) == (0, second["asked"])
    for key in (
        "traces",
        "contexts",
        "states",
        "records",
        "asked",
        "not_asked",
        "hindsight_skips",
        "redactions",
    ):
        assert second[key] == other["summary"][key], key
    assert {k: n for k, n in second["pairs"].items() if k.startswith("hindsight")} == {
        k: n for k, n in other["summary"]["pairs"].items() if k.startswith("hindsight")
    }


@pytest.mark.slow
def test_a_hub_dataset_becomes_a_release_that_names_its_commit_and_licence(
    prefect_server: dict[str, str], tmp_path: Path, hub: hub_stub.Hub
) -> None:
    env = dict(os.environ) | prefect_server
    env |= {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": hub_stub.TOKEN}

    def run(name: str, work: Path) -> CompletedProcess[str]:
        script = str(Path(sys.executable).parent / "tracemill")
        command = [script, "run", "--hub", name, "-w", str(work), "--json"]
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False)

    lines = (EXAMPLES / "swe_gym" / "trajectories.jsonl").read_text().splitlines()
    pq.write_table(pa.Table.from_pylist([json.loads(line) for line in lines]), tmp_path / "x.parquet")
    card = b"---\nlicense: mit\n---\n"
    files = {"data/train-00000-of-00001.parquet": (tmp_path / "x.parquet").read_bytes(), "README.md": card}
    commit = hub.put("orchard/runs", files, card={"license": "mit"}, private=True)
    record = record_of(run("orchard/runs@main", tmp_path / "w"))
    assert record["sources"] == ["orchard/runs@main", f"hf://datasets/orchard/runs@{commit}:train"]
    assert (record["summary"]["files"], record["summary"]["traces"]) == (1, 2)
    assert "license: mit" in (Path(record["release"]["path"]) / "README.md").read_text()
    written = [p.read_bytes() for p in (tmp_path / "w").rglob("*") if p.is_file()]
    assert not any(hub_stub.TOKEN.encode() in data for data in written)
    done = run("orchard/runs@v9", tmp_path / "v")
    assert (done.returncode, done.stdout) == (2, "")
    said = "tracemill: orchard/runs@v9 has no such revision; expected a branch, tag or commit of it"
    assert done.stderr.strip() == said
    assert not (tmp_path / "v").exists()


@pytest.mark.slow
def test_a_killed_run_reads_no_row_group_twice_but_the_one_in_flight(
    prefect_server: dict[str, str], tmp_path: Path, hub: hub_stub.Hub
) -> None:
    noise = random.Random(2)
    said = [{"role": role, "content": "x"} for role in ("user", "assistant")]
    rows = [
        {"instance_id": f"a__b-{n}", "messages": said, "patch": noise.randbytes(9000).hex()}
        for n in range(60)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=5)
    hub.put("orchard/runs", {"data/train.parquet": (tmp_path / "x.parquet").read_bytes()})
    hub.faults = lambda request: time.sleep(0.5 if request.range else 0) or 0
    config = tmp_path / "run.toml"
    config.write_text("shard_mb = 1e-9\nworkspace = 'w'\n[sources]\nhub = ['orchard/runs']\n")
    env = dict(os.environ) | prefect_server | {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0"}
    command = [str(Path(sys.executable).parent / "tracemill"), "run", str(config), "--json"]
    journal = tmp_path / "w" / FILE
    with subprocess.Popen(command, env=env, stdout=PIPE, stderr=PIPE, start_new_session=True) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if journal.exists() and journal.read_bytes().count(b'"mark"') >= 4:
                break
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    before = hub.reads("train.parquet")
    footer = before[0]
    marked = journal.read_bytes().count(b'"mark"')
    hub.log.clear()
    record = record_of(subprocess.run(command, env=env, capture_output=True, text=True, check=False))
    after = hub.reads("train.parquet")
    again = (set(before) & set(after)) - {footer}
    assert len(again) <= 1
    assert len(set(after) - {footer}) == 12 - marked
    assert record["summary"]["traces"] == 60
    assert record["summary"]["flags"]["unfinished run resumed"] == 1
