"""Receive webhooks of the Hub, and tell Prefect of releases that were pushed from elsewhere.

    TRACEMILL_WEBHOOK_SECRET=... PREFECT_API_URL=... python deploy/hub_webhook.py --dataset OWNER/NAME

POST / takes a webhook (https://huggingface.co/docs/hub/webhooks). A commit on `main` that holds a release
becomes one event `tracemill.release.published` with dataset, version and commit. GET /health answers `ok`.

    200  published, or nothing to do: `status` says which
    400  not a webhook of the Hub        401  wrong secret          403  a repository that is not listed
    413  body too large                  502  the Hub failed        503  Prefect did not take the event

After 502 and 503 nothing is remembered: replay the webhook in its settings on the Hub.
"""

import argparse
import asyncio
import hmac
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import uvicorn
from prefect.client.orchestration import get_client
from prefect.events import Event, Resource
from prefect.events.filters import EventFilter, EventNameFilter, EventResourceFilter
from prefect.settings import PREFECT_API_URL
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from tracemill.data_cards.hub.hub_errors import RetryPolicy
from tracemill.data_cards.hub.repo_state import open_to_read, read_repo_manifest
from tracemill.data_cards.model.manifest import PublishedManifest
from tracemill.data_cards.model.versions import REPO_ID
from tracemill.records.errors import ConfigError, TracemillError, WorkspaceError

PUBLISHED = "tracemill.release.published"
SECRET_VARIABLE = "TRACEMILL_WEBHOOK_SECRET"
MIN_SECRET = 16
MAX_BODY_BYTES = 1_000_000
_MAIN = "refs/heads/main"
_PATIENCE = RetryPolicy(tries=1)  # huggingface_hub tries again by itself


class _What(BaseModel):
    action: str
    scope: str


class _Repo(BaseModel):
    type: str
    name: str


class _UpdatedRef(BaseModel):
    ref: str
    newSha: str | None = None


class Webhook(BaseModel):
    """The fields that are read of a webhook."""

    event: _What
    repo: _Repo
    updatedRefs: tuple[_UpdatedRef, ...] = ()

    def pushed_commit(self) -> str | None:
        """Return the commit that was pushed to `main`, None where none was."""
        if not self.event.scope.startswith("repo.content"):
            return None
        return next((each.newSha for each in self.updatedRefs if each.ref == _MAIN and each.newSha), None)


class PublishedCommits:
    """The commits that Prefect was told of, in a SQLite file."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises WorkspaceError where it cannot be written."""
        self._path = path
        try:
            with self._writing() as connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS published"
                    " (dataset TEXT, commit_id TEXT, version TEXT, PRIMARY KEY (dataset, commit_id))"
                )
        except sqlite3.Error as error:
            raise WorkspaceError(f"{path} cannot be written ({error})", "a SQLite file") from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
            yield connection

    def version_of(self, dataset: str, commit: str) -> str | None:
        """Return the version of a commit that Prefect was told of."""
        query = "SELECT version FROM published WHERE dataset = ? AND commit_id = ?"
        with self._writing() as connection:
            found = connection.execute(query, (dataset, commit)).fetchone()
        return found and found[0]

    def commit_of(self, dataset: str, version: str) -> str | None:
        """Return the first commit of a version that Prefect was told of."""
        query = "SELECT commit_id FROM published WHERE dataset = ? AND version = ? ORDER BY rowid"
        with self._writing() as connection:
            found = connection.execute(query, (dataset, version)).fetchone()
        return found and found[0]

    def add(self, dataset: str, commit: str, version: str) -> None:
        """Remember a commit."""
        with self._writing() as connection:
            connection.execute("INSERT OR IGNORE INTO published VALUES (?, ?, ?)", (dataset, commit, version))


class Receiver:
    """A receiver that answers webhooks, one commit at a time."""

    def __init__(self, secret: str, datasets: frozenset[str], known: PublishedCommits) -> None:
        self._secret = secret.encode()
        self._datasets = datasets
        self._known = known
        self._one_at_a_time = asyncio.Lock()

    async def receive(self, request: Request) -> JSONResponse:
        """Answer a POST."""
        if not hmac.compare_digest(request.headers.get("X-Webhook-Secret", "").encode(), self._secret):
            return _answer(401, "refused: wrong or missing X-Webhook-Secret")
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                return _answer(413, f"refused: more than {MAX_BODY_BYTES:,} bytes")
        try:
            webhook = Webhook.model_validate_json(bytes(body))
        except ValidationError:
            return _answer(400, "refused: not a webhook of the Hub")
        if webhook.repo.type != "dataset" or webhook.repo.name not in self._datasets:
            return _answer(403, "refused: a repository that is not listed with --dataset")
        commit = webhook.pushed_commit()
        if commit is None:
            return _answer(200, "ignored: no push to main", webhook.repo.name)
        async with self._one_at_a_time:
            return await self._publish(webhook.repo.name, commit)

    async def _publish(self, dataset: str, commit: str) -> JSONResponse:
        """Tell Prefect of a commit, once."""
        if version := self._known.version_of(dataset, commit):
            return _answer(200, "known: Prefect was told of this commit", dataset, version, commit)
        try:
            manifest = await asyncio.to_thread(_read_release, dataset, commit)
        except TracemillError as error:
            return _answer(502, f"failed: {error}", dataset, commit=commit)
        if manifest is None:
            return _answer(200, "ignored: no release of tracemill", dataset, commit=commit)
        version = manifest.version
        if self._known.commit_of(dataset, version):
            self._known.add(dataset, commit, version)
            return _answer(200, "ignored: Prefect was told of this version", dataset, version, commit)
        try:
            told = await _tell_prefect(dataset, version, commit)
        except (httpx.HTTPError, RuntimeError, ValueError) as error:
            return _answer(503, f"failed: no event ({type(error).__name__})", dataset, version, commit)
        self._known.add(dataset, commit, version)
        said = "published" if told else "known: the run that pushed it told Prefect"
        return _answer(200, said, dataset, version, commit)


def _read_release(dataset: str, commit: str) -> PublishedManifest | None:
    """Return the manifest at a commit. Raises ReleaseError where the Hub does not answer."""
    api = open_to_read()
    return _PATIENCE.run(lambda: read_repo_manifest(api, dataset, commit))


async def _tell_prefect(dataset: str, version: str, commit: str) -> bool:
    """Emit the event; return False where Prefect has it from the run that pushed the release."""
    resource = f"tracemill.release.{dataset}"
    asked = EventFilter(event=EventNameFilter(name=[PUBLISHED]), resource=EventResourceFilter(id=[resource]))
    async with get_client() as client:
        page = await client.read_events(asked, limit=50)
        if any(event.payload.get("commit") == commit for event in page.events):
            return False
        event = Event(
            event=PUBLISHED,
            resource=Resource({"prefect.resource.id": resource, "prefect.resource.name": dataset}),
            payload={"dataset": dataset, "version": version, "commit": commit},
        )
        response = await client.request("POST", "/events", json=[event.model_dump(mode="json")])
        response.raise_for_status()
    return True


def _answer(
    code: int, status: str, dataset: str | None = None, version: str | None = None, commit: str | None = None
) -> JSONResponse:
    """Answer, with a line on stderr."""
    named = {"dataset": dataset, "version": version, "commit": commit}
    content = {"status": status, **{name: value for name, value in named.items() if value}}
    print(code, json.dumps(content), file=sys.stderr, flush=True)
    return JSONResponse(content, code)


async def _health(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


def build_app(secret: str, datasets: frozenset[str], state: Path) -> Starlette:
    """Build the service. Raises ConfigError or WorkspaceError for what it cannot run with."""
    if len(secret) < MIN_SECRET:
        raise ConfigError(f"{SECRET_VARIABLE} is not set or too short", f"at least {MIN_SECRET} characters")
    for dataset in datasets:
        if not REPO_ID.fullmatch(dataset):
            raise ConfigError(f"--dataset {dataset!r} is not a dataset id of the Hub", "OWNER/NAME")
    if PREFECT_API_URL.value() is None:
        raise ConfigError("PREFECT_API_URL is not set", "the address of a Prefect server")
    receiver = Receiver(secret, datasets, PublishedCommits(state))
    routes = [Route("/", receiver.receive, methods=["POST"]), Route("/health", _health)]
    return Starlette(routes=routes)


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description="Tell Prefect of releases that were pushed to the Hub.")
    parser.add_argument("--dataset", action="append", required=True, metavar="OWNER/NAME")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8420)
    parser.add_argument("--state", type=Path, default=Path("hub-webhook.sqlite"), metavar="FILE")
    given = parser.parse_args()
    try:
        app = build_app(os.environ.get(SECRET_VARIABLE, ""), frozenset(given.dataset), given.state)
    except TracemillError as error:
        sys.exit(f"hub_webhook: {error}")
    uvicorn.run(app, host=given.host, port=given.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
