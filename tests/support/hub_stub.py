"""A Hugging Face Hub on loopback: real HTTP, files and commits in memory; `hub_writes` is the writing half.

Covers what `huggingface_hub` 2.4 and `datasets` 5.2 ask of it: dataset info by revision, tree,
paths-info, auth-check, and files with byte ranges. Clients want HF_ENDPOINT and HF_HUB_DISABLE_XET=1
before they are imported. `log` holds every request with its status and range.
"""

import hashlib
import json
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from hub_jobs import JobRoutes
from hub_writes import BIG, WriteRoutes, repo_key

TOKEN = "hf_loopbackloopbackloopback"  # the one that opens private and gated datasets, and may write
READ_TOKEN = "hf_readingreadingreading"


USERS: dict[str | None, dict[str, Any]] = {
    TOKEN: {"name": "maker", "orgs": {"team": "write", "readers": "read"}},
    READ_TOKEN: {"name": "maker", "role": "read"},
}


@dataclass
class Request:
    method: str
    path: str
    range: str | None
    token: str | None
    status: int = 0


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    titles: list[str] = field(default_factory=list)
    private: bool = False
    gated: bool = False
    card: dict[str, Any] = field(default_factory=dict)

    def resolve(self, revision: str) -> str | None:
        return self.refs.get(revision) or (revision if revision in self.commits else None)


@dataclass
class Hub:
    url: str = ""
    repos: dict[str, Repo] = field(default_factory=dict)
    log: list[Request] = field(default_factory=list)
    plain: dict[str, bytes] = field(default_factory=dict)
    faults: Callable[[Request], int] = field(default=lambda request: 0)
    loses: Callable[[Request], bool] = field(default=lambda request: False)
    """Whether the answer to a request that was carried out is lost."""
    lfs: dict[str, bytes] = field(default_factory=dict)
    users: dict[str | None, dict[str, Any]] = field(default_factory=lambda: dict(USERS))
    ranges: bool = True
    jobs: list[dict[str, Any]] = field(default_factory=list)
    """Jobs that were submitted, as they came, with an `id` and a `stage`."""

    def clear(self) -> None:
        """Empty, and without faults."""
        for held in (self.repos, self.plain, self.log, self.lfs, self.jobs):
            held.clear()
        self.faults, self.loses, self.ranges = lambda request: 0, lambda request: False, True
        self.users = dict(USERS)

    def put(
        self, repo: str, files: dict[str, bytes], tag: str | None = None, whole: bool = False, **fields: Any
    ) -> str:
        """One more commit on `main` with these files beside those there are, or `whole` with no others; gives
        its id."""
        held = self.repos.setdefault(repo, Repo())
        for name, value in fields.items():
            setattr(held, name, value)
        before = held.commits.get(held.refs.get("main", ""), {})
        after = files if whole else before | files
        seed = repr(
            [repo, len(held.commits), sorted((n, hashlib.sha256(d).hexdigest()) for n, d in after.items())]
        )
        commit = hashlib.sha1(seed.encode()).hexdigest()
        held.commits[commit] = after
        held.refs["main"] = commit
        if tag:
            held.refs[tag] = commit
            held.tags.add(tag)
        return commit

    def reads(self, name: str) -> list[str]:
        """The ranges that were read of a file, `` for the whole of it."""
        return [r.range or "" for r in self.log if r.method == "GET" and r.path.endswith(name)]


class _Handler(WriteRoutes, JobRoutes, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _handle(self) -> None:
        body = self._body()
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        self.request_ = Request(
            self.command, unquote(self.path.partition("?")[0]), self.headers.get("Range"), token
        )
        self.hub.log.append(self.request_)
        if status := self.hub.faults(self.request_):
            self._send(status, b"{}")
            return
        parts = urlsplit(self.path)
        self._route(unquote(parts.path), parse_qs(parts.query), body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle

    def _route(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        if self.write(path, body) or self.jobs(path, query, body):
            return
        if path in self.hub.plain:
            self._file(self.hub.plain[path], hashlib.sha1(self.hub.plain[path]).hexdigest())
        elif found := re.fullmatch(r"/api/(datasets|models)/([^/]+/[^/]+)(?:/([a-z-]+)(?:/(.*))?)?", path):
            self._api(repo_key(found[1], found[2]), *found.groups()[2:], query, body)
        elif found := re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(repo_key(found[1] or "models", found[2]), *found.groups()[2:])
        else:
            self._error(404, "no such address")

    def _repo(self, name: str) -> Repo | None:
        repo = self.hub.repos.get(name)
        if repo is None or (repo.private and self.request_.token != TOKEN):
            self._error(404 if self.request_.token else 401, "Repository not found", "RepoNotFound")
            return None
        return repo

    def _api(
        self, name: str, verb: str | None, rest: str | None, query: dict[str, list[str]], body: bytes
    ) -> None:
        repo = self._repo(name)
        if repo is None:
            return
        if verb == "auth-check":
            self._send(200, b"{}") if self._may_read(repo) else self._gated()
            return
        revision, _, folder = (rest or "main").partition("/")
        commit = repo.resolve(revision)
        if commit is None:
            self._error(404, f"Invalid rev id: {revision}", "RevisionNotFound")
            return
        files = repo.commits[commit]
        if verb in (None, "revision"):
            self._json(
                {
                    "id": name.removeprefix("models/"),
                    "sha": commit,
                    "private": repo.private,
                    "gated": "auto" if repo.gated else False,
                    "tags": [],
                    "cardData": repo.card,
                    "siblings": [{"rfilename": path} for path in sorted(files)],
                }
            )
        elif verb == "tree":
            self._tree(files, folder, query.get("recursive") in (["true"], ["True"]))
        elif verb == "paths-info":
            wanted = _paths(body)
            self._json([_entry(path, files[path]) for path in wanted if path in files])
        else:
            self._error(404, "no such address")

    def _tree(self, files: dict[str, bytes], folder: str, recursive: bool) -> None:
        prefix = f"{folder}/" if folder else ""
        below = {path: data for path, data in files.items() if path.startswith(prefix)}
        if prefix and not below:
            self._error(404, "no such folder", "EntryNotFound")
            return
        folders = {
            prefix + "/".join(inner[: depth + 1])
            for path in below
            for inner in [path.removeprefix(prefix).split("/")]
            for depth in range(len(inner) - 1 if recursive else min(1, len(inner) - 1))
        }
        found = [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in sorted(folders)]
        shown = [p for p in sorted(below) if recursive or "/" not in p.removeprefix(prefix)]
        self._json([*found, *(_entry(path, files[path]) for path in shown)])

    def _resolve(self, name: str, revision: str, path: str) -> None:
        repo = self._repo(name)
        if repo is None:
            return
        commit = repo.resolve(revision)
        if commit is None:
            self._error(404, "Invalid rev id", "RevisionNotFound")
        elif not self._may_read(repo):
            self._gated()
        elif path not in repo.commits[commit]:
            self._error(404, "Entry not found", "EntryNotFound", commit)
        else:
            data = repo.commits[commit][path]
            self._file(data, hashlib.sha256(data).hexdigest(), commit)

    def _may_read(self, repo: Repo) -> bool:
        return not repo.gated or self.request_.token == TOKEN

    def _gated(self) -> None:
        self._error(403, "Access to this dataset is restricted", "GatedRepo")

    def _file(self, data: bytes, tag: str, commit: str = "") -> None:
        headers = {"ETag": f'"{tag}"', "Accept-Ranges": "bytes" if self.hub.ranges else "none"}
        headers |= {"X-Repo-Commit": commit} if commit else {}
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.request_.range or "")
        if not asked or not self.hub.ranges:
            self._send(200, data, headers)
            return
        first, last = asked.groups()
        start = int(first) if first else len(data) - int(last)
        end = min(int(last) if first and last else len(data) - 1, len(data) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
        self._send(206, data[start : end + 1], headers)

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, message: str, code: str = "", commit: str = "") -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        headers |= {"X-Repo-Commit": commit} if commit else {}
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.request_.status = status
        if self.hub.loses(self.request_):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _entry(path: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data)}
    entry["oid"] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    if path.endswith(BIG):
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return entry


def _paths(body: bytes) -> list[str]:
    try:
        given = json.loads(body)["paths"]
    except ValueError:
        given = parse_qs(body.decode()).get("paths", [])
    return [given] if isinstance(given, str) else given


def serve() -> tuple[Hub, ThreadingHTTPServer]:
    """A Hub that answers at `hub.url` until the server is shut down."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return hub, server
