"""The webhook receiver as a process of its own, with a Hub on loopback and a real Prefect server."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hub_stub import TOKEN, Hub
from prefect_process import prefect_serving
from teacher_chains import free_port

ROOT = Path(__file__).resolve().parents[2]
SECRET = "a-secret-of-the-webhook"
REPO = "team/pairs"


@contextmanager
def receiver(folder: Path, **environment: str) -> Iterator[str]:
    """The address of a receiver for `REPO` that keeps its file in `folder`."""
    port = free_port()
    command = [sys.executable, str(ROOT / "deploy" / "hub_webhook.py"), "--dataset", REPO]
    command += ["--port", str(port), "--state", str(folder / "state.sqlite")]
    env = dict(os.environ) | {
        "TRACEMILL_WEBHOOK_SECRET": SECRET,
        "PREFECT_HOME": str(folder / "client"),
        "HF_HUB_OFFLINE": "0",
        "HF_TOKEN": TOKEN,
        **environment,
    }
    with (folder / "receiver.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None, (folder / "receiver.log").read_text()[-2000:]
            assert time.monotonic() < deadline
            with suppress(OSError), urllib.request.urlopen(f"{url}health", timeout=5) as answer:
                assert answer.read() == b"ok"
                break
            time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def post(url: str, body: bytes, secret: str | None = SECRET) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json"} | ({"X-Webhook-Secret": secret} if secret else {})
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def webhook(commit: str, ref: str = "refs/heads/main", **more: Any) -> bytes:
    """A webhook as the Hub sends it after a push."""
    value = {
        "event": {"action": "update", "scope": "repo.content"},
        "repo": {"type": "dataset", "name": REPO, "id": "1", "private": True, "headSha": commit},
        "webhook": {"id": "2", "version": 3},
        "updatedRefs": [{"ref": ref, "oldSha": None, "newSha": commit}],
    }
    return json.dumps(value | more).encode()


def release(hub: Hub, version: str, **files: bytes) -> str:
    """Commit a release to the Hub; gives the commit."""
    manifest = {"name": "pairs", "version": version, "content_fingerprint": f"f-{version}", "rows": 3}
    return hub.put(REPO, {"manifest.json": json.dumps(manifest).encode(), **files})


def events(env: dict[str, str]) -> list[dict[str, Any]]:
    """The events of releases that Prefect has, oldest first."""
    wanted = {"filter": {"event": {"name": ["tracemill.release.published"]}}, "limit": 50}
    request = urllib.request.Request(
        f"{env['PREFECT_API_URL']}/events/filter",
        json.dumps(wanted).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())["events"][::-1]


def wait_for_events(env: dict[str, str], count: int) -> list[dict[str, Any]]:
    """The events, once there are so many: the server stores them in the background."""
    deadline = time.monotonic() + 60
    while len(found := events(env)) < count and time.monotonic() < deadline:
        time.sleep(0.2)
    assert len(found) == count
    return found


def test_what_is_no_push_of_a_listed_dataset_is_refused_before_anything_is_asked(
    hub: Hub, tmp_path: Path
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/api"
    other = {"type": "dataset", "name": "stranger/pairs"}
    model = {"type": "model", "name": REPO}
    with receiver(tmp_path, PREFECT_API_URL=nowhere) as url:
        found = [
            post(url, webhook("c"), None)[0],
            post(url, webhook("c"), SECRET[:-1])[0],
            post(url, b"{}")[0],
            post(url, b"no json")[0],
            post(url, webhook("c", repo=other))[0],
            post(url, webhook("c", repo=model))[0],
            post(url, b" " * 1_000_001)[0],
        ]
        ignored = [
            post(url, webhook("c", ref="refs/pr/1")),
            post(url, webhook("c", ref="refs/tags/2026.11.23")),
            post(url, webhook("c", event={"action": "create", "scope": "discussion"})),
        ]
        assert hub.log == []
        assert found == [401, 401, 400, 400, 403, 403, 413]
        assert ignored == [(200, {"status": "ignored: no push to main", "dataset": REPO})] * 3
        card = hub.put(REPO, {"README.md": b"a dataset of others"})
        said = {"status": "ignored: no release of tracemill", "dataset": REPO, "commit": card}
        assert post(url, webhook(card)) == (200, said)
        commit = release(hub, "2026.11.23")
        status, refused = post(url, webhook(commit))
        assert (status, refused["status"][:16]) == (503, "failed: no event")
        later = release(hub, "2026.11.24")
        hub.faults = lambda request: 403
        status, refused = post(url, webhook(later))
        assert (status, refused["status"].startswith("failed: ")) == (502, True)
    log = (tmp_path / "receiver.log").read_text()
    assert SECRET not in log
    assert TOKEN not in log
    assert len(log.splitlines()) == len(found) + len(ignored) + 3


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"TRACEMILL_WEBHOOK_SECRET": "short"}, "TRACEMILL_WEBHOOK_SECRET is not set or too short"),
        ({}, "PREFECT_API_URL is not set; expected the address of a Prefect server"),
    ],
    ids=["secret", "no server"],
)
def test_it_does_not_start_without_a_secret_or_a_server(
    environment: dict[str, str], line: str, tmp_path: Path
) -> None:
    env = {"TRACEMILL_WEBHOOK_SECRET": SECRET, "PREFECT_HOME": str(tmp_path)} | environment
    command = [sys.executable, str(ROOT / "deploy" / "hub_webhook.py"), "--dataset", REPO]
    done = subprocess.run(
        command, env=dict(os.environ) | env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"hub_webhook: {line}")
    assert len(done.stderr.splitlines()) == 1


OWN_EVENT = """
import sys
from prefect.events import emit_event
from prefect.events.worker import EventsWorker

dataset, version, commit = sys.argv[1:]
resource = {"prefect.resource.id": f"tracemill.release.{dataset}", "prefect.resource.name": dataset}
payload = {"dataset": dataset, "version": version, "commit": commit}
emit_event("tracemill.release.published", resource, payload=payload)
EventsWorker.instance().drain()
"""


@pytest.mark.slow
def test_a_commit_becomes_one_event_whoever_tells_of_it_and_however_often(hub: Hub, tmp_path: Path) -> None:
    with prefect_serving(tmp_path / "prefect") as env:
        address = {"PREFECT_API_URL": env["PREFECT_API_URL"]}
        first = release(hub, "2026.11.22")
        with receiver(tmp_path, **address) as url:
            said = {"dataset": REPO, "version": "2026.11.22", "commit": first}
            assert post(url, webhook(first)) == (200, {"status": "published", **said})
            assert post(url, webhook(first))[1]["status"] == "known: Prefect was told of this commit"
            audit = release(hub, "2026.11.22", **{"README.md": b"with an audit"})
            assert post(url, webhook(audit))[1]["status"] == "ignored: Prefect was told of this version"
        [event] = wait_for_events(env, 1)
        assert event["payload"] == said
        assert event["resource"]["prefect.resource.id"] == f"tracemill.release.{REPO}"
        second = release(hub, "2026.11.23")
        command = [sys.executable, "-c", OWN_EVENT, REPO, "2026.11.23", second]
        subprocess.run(command, env=dict(os.environ) | env, check=True)
        wait_for_events(env, 2)
        third = release(hub, "2026.11.24")
        with receiver(tmp_path, **address) as url:
            assert post(url, webhook(first))[1]["status"] == "known: Prefect was told of this commit"
            told = post(url, webhook(second))[1]["status"]
            assert told == "known: the run that pushed it told Prefect"
            assert post(url, webhook(third))[1]["status"] == "published"
        versions = [each["payload"]["version"] for each in wait_for_events(env, 3)]
    assert versions == ["2026.11.22", "2026.11.23", "2026.11.24"]
