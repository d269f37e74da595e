"""Messages of Prefect on events of tracemill: a real server, and a webhook receiver on loopback."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from console_says import Call, refusal_of
from prefect_process import prefect_serving
from pydantic import ValidationError
from teacher_chains import free_port

from tracemill.flows.config.notification_settings import OCCASIONS, NotificationSettings
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.notifications import MESSAGES

SCRIPT = str(Path(sys.executable).parent / "tracemill")
PREPARE = """
import sys
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.blocks.system import Secret

fields = {"subject": "{{subject}}", "body": "{{body}}"}
block = CustomWebhookNotificationBlock(name="team", url=sys.argv[1], json_data=fields)
block.save("team", _sync=True)
Secret(value="nothing to say").save("mute", _sync=True)
"""
EMIT = """
from prefect.events import emit_event
from prefect.events.worker import EventsWorker
from tracemill.flows.publish.drift_event import emit_release_drifted

def emit(event, resource, **payload):
    named = {"prefect.resource.id": resource, "prefect.resource.name": resource.rpartition(".")[2]}
    emit_event(event, named, payload=payload)

emit("tracemill.run.failed", "tracemill.run.traces", flow="harvest", error="LedgerError")
emit("tracemill.budget.reached", "tracemill.run.traces", run_id="r1", cap_usd=10.0, spent_usd=9.98)
emit("tracemill.release.created", "tracemill.release.traces", dataset="traces", version="2026.11.23", rows=64)
emit("tracemill.release.published", "tracemill.release.team/pairs", dataset="team/pairs",
     version="2026.11.23", commit="c0ffee")
EventsWorker.instance().drain()
emit_release_drifted("team/pairs", "2026.11.24", "2026.11.23")
"""


@contextmanager
def receiving() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook receiver, and the messages that came."""
    messages: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", messages
        server.shutdown()


def run(env: dict[str, str], *command: object) -> "subprocess.CompletedProcess[str]":
    argv = [str(part) for part in command]
    return subprocess.run(argv, env=dict(os.environ) | env, capture_output=True, text=True, check=False)


def notify(env: dict[str, str], folder: Path, *flags: str, **settings: Any) -> str:
    """What `tracemill notify` says with these settings, which it takes."""
    config = folder / "run.toml"
    config.write_text("[notifications]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items()))
    done = run(env, SCRIPT, "notify", config, *flags)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def wait_for_messages(messages: list[dict[str, Any]], count: int) -> None:
    deadline = time.monotonic() + 90
    while len(messages) < count and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(3)  # one too many would come by now
    assert len(messages) == count, messages


@pytest.mark.slow
@pytest.mark.long
def test_each_occasion_sends_one_message_through_the_block(tmp_path: Path) -> None:
    with prefect_serving(tmp_path / "prefect") as env, receiving() as (url, messages):
        done = run(env, sys.executable, "-c", PREPARE, url)
        assert done.returncode == 0, done.stderr
        block = "custom-webhook/team"
        said = notify(env, tmp_path, "--test", blocks=[block], on=[*OCCASIONS])
        lines = [f"{occasion}: {block}" for occasion in OCCASIONS]
        assert said.splitlines() == [*lines, f"test message sent: {block}"]
        assert messages == [{"subject": "tracemill: test", "body": "a test message of `tracemill notify`"}]
        messages.clear()
        assert notify(env, tmp_path, blocks=[block], on=[*OCCASIONS]).splitlines() == lines
        done = run(env, sys.executable, "-c", EMIT)
        assert done.returncode == 0, done.stderr
        wait_for_messages(messages, 5)
        assert {each["subject"]: each["body"] for each in messages} == {
            "tracemill: harvest failed": "harvest of traces failed: LedgerError",
            "tracemill: traces reached its cap": "run r1 spent $9.98 of $10.0",
            "tracemill: traces 2026.11.23": "wrote version 2026.11.23 of traces, 64 rows",
            "tracemill: published team/pairs 2026.11.23": (
                "version 2026.11.23 of team/pairs is on the Hub, commit c0ffee"
            ),
            "tracemill: team/pairs drifts": (
                "version 2026.11.24 of team/pairs was not published: it drifts from 2026.11.23."
                " Look at `tracemill release diff`"
            ),
        }
        messages.clear()
        gone = [f"{occasion}: removed" for occasion in OCCASIONS if occasion != "drift"]
        changed = notify(env, tmp_path, blocks=[block], on=["drift"]).splitlines()
        assert sorted(changed) == sorted([*gone, f"drift: {block}"])
        run(env, sys.executable, "-c", EMIT)
        wait_for_messages(messages, 1)
        assert messages[0]["subject"] == "tracemill: team/pairs drifts"
        refused(env, tmp_path, "custom-webhook/other", "the Prefect server has no block custom-webhook/other")
        refused(env, tmp_path, "secret/mute", "the block secret/mute sends no messages")
        assert notify(env, tmp_path, blocks=[]) == "drift: removed\n"
        assert notify(env, tmp_path, blocks=[]) == "no messages\n"


def refused(env: dict[str, str], folder: Path, block: str, line: str) -> None:
    config = folder / "refused.toml"
    config.write_text(f"[notifications]\nblocks = ['{block}']\n")
    said = refusal_of(run(env, SCRIPT, "notify", config))
    assert said.startswith(f"tracemill: {line}; expected")


def test_a_server_is_needed(console: Call) -> None:
    line = refusal_of(console("notify", PREFECT_API_URL=""))
    assert line == "tracemill: no Prefect server is named; expected its address; set PREFECT_API_URL"


def test_a_dead_server_is_one_line(tmp_path: Path) -> None:
    env = {"PREFECT_API_URL": f"http://127.0.0.1:{free_port()}/api", "PREFECT_HOME": str(tmp_path)}
    refused(env, tmp_path, "slack-webhook/team", "the Prefect server does not answer (ConnectError)")


@pytest.mark.parametrize("wrong", [{"blocks": ["team"]}, {"on": ["rain"]}, {"block": []}])
def test_settings_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NotificationSettings.model_validate(wrong)


def test_messages_do_not_make_a_run_another_one() -> None:
    loud = load_settings(None, {"notifications": {"blocks": ["slack-webhook/team"]}})
    assert loud.fingerprint() == load_settings(None, {}).fingerprint()
    assert MESSAGES.keys() == set(OCCASIONS)
