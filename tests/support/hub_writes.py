"""The writing half of the Hub on loopback: who am I, repositories, LFS uploads, commits and tags.

As `huggingface_hub` 2.4 asks for them with HF_HUB_DISABLE_XET=1. A card's head is checked on
`/api/validate-yaml` as the Hub does: a broken one is refused before anything is uploaded.
"""

import base64
import hashlib
import json
import re
from typing import Any

import yaml

_SIZES = {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "n>10M"}
_LICENCES = {"apache-2.0", "mit", "cc-by-4.0", "other", "unknown"}


BIG = (".parquet", ".safetensors")  # files that go by LFS


def repo_key(kind: str, name: str) -> str:
    """The key of a repository among those of the Hub; models may have the name of a dataset."""
    return f"models/{name}" if kind.startswith("model") else name


class WriteRoutes:
    """Mixed into the handler: `write` answers what it knows and says whether it did."""

    def write(self: Any, path: str, body: bytes) -> bool:
        if path == "/api/whoami-v2":
            self._whoami()
        elif path == "/api/validate-yaml":
            errors = head_errors(json.loads(body)["content"])
            self._json(
                {"errors": [{"message": each} for each in errors], "warnings": []}, 400 if errors else 200
            )
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/repos/delete":
            self._delete(json.loads(body))
        elif re.fullmatch(r"(?:/datasets)?/[^/]+/[^/]+\.git/info/lfs/objects/batch", path):
            self._batch(json.loads(body))
        elif path.startswith("/_lfs/"):
            self._put_object(path.removeprefix("/_lfs/"), body)
        elif found := re.fullmatch(
            r"/api/(datasets|models)/([^/]+/[^/]+)/(preupload|commit|tag|refs|super-squash|lfs-files)(?:/(.*))?",
            path,
        ):
            self._of_repo(repo_key(found[1], found[2]), *found.groups()[2:], body)
        else:
            return False
        return True

    def _whoami(self: Any) -> None:
        user = self.hub.users.get(self.request_.token)
        if user is None:
            self._error(401, "Invalid credentials in Authorization header")
            return
        orgs = [{"name": name, "roleInOrg": role} for name, role in user.get("orgs", {}).items()]
        access = {"displayName": "t", "role": user.get("role", "write")}
        self._json(
            {
                "type": "user",
                "name": user["name"],
                "orgs": orgs,
                "auth": {"type": "access_token", "accessToken": access},
            }
        )

    def _create(self: Any, asked: dict[str, Any]) -> None:
        user = self.hub.users.get(self.request_.token) or {}
        name = f"{asked.get('organization') or user.get('name')}/{asked['name']}"
        url = f"{self.hub.url}/datasets/{name}"
        if asked.get("type", "model") == "model":
            url = f"{self.hub.url}/{name}"
        name = repo_key(asked.get("type", "model"), name)
        if user.get("role") == "read" or not user:
            self._error(403, "You don't have the rights to create a dataset under this namespace")
        elif name in self.hub.repos:
            self._json({"error": "You already created this dataset repo", "url": url}, 409)
        else:
            self.hub.put(name, {".gitattributes": b""}, private=asked.get("visibility") == "private")
            self._json({"url": url, "name": name, "id": "0" * 24})

    def _delete(self: Any, asked: dict[str, Any]) -> None:
        name = f"{asked.get('organization')}/{asked['name']}"
        if self.hub.users.get(self.request_.token, {}).get("role", "write") == "read":
            self._error(403, "Forbidden: you must use a write token")
        elif self._repo(name) is not None:
            del self.hub.repos[name]
            self._send(200, b"")

    def _batch(self: Any, asked: dict[str, Any]) -> None:
        objects = []
        for each in asked["objects"]:
            entry = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in self.hub.lfs:
                entry["actions"] = {"upload": {"href": f"{self.hub.url}/_lfs/{each['oid']}", "header": {}}}
            objects.append(entry)
        self._json({"transfer": "basic", "objects": objects})

    def _put_object(self: Any, oid: str, body: bytes) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            self._error(400, "sha256 mismatch")
            return
        self.hub.lfs[oid] = body
        self._send(200, b"")

    def _of_repo(self: Any, name: str, verb: str, rest: str | None, body: bytes) -> None:
        repo = self._repo(name)
        if repo is None:
            return
        user = self.hub.users.get(self.request_.token) or {}
        if verb == "refs":
            kinds = {
                kind: [
                    {"name": n, "ref": f"refs/{n}", "targetCommit": c}
                    for n, c in repo.refs.items()
                    if (n in repo.tags) == is_tag
                ]
                for kind, is_tag in (("branches", False), ("tags", True))
            }
            self._json({**kinds, "converts": [], "pullRequests": []})
        elif user.get("role") == "read" or not user:
            self._error(403, "Forbidden: you must use a write token")
        elif verb == "preupload":
            files = repo.commits[repo.refs["main"]]
            self._json({"files": [_upload_mode(each, files) for each in json.loads(body)["files"]]})
        elif verb == "commit":
            self._commit(name, repo, [json.loads(line) for line in body.splitlines() if line.strip()])
        elif verb == "lfs-files":
            self._objects(json.loads(body)["deletions"]["sha"] if rest == "batch" else None)
        elif verb == "super-squash":
            self._squash(name, repo, rest or "main", json.loads(body)["message"])
        elif self.request_.method == "DELETE":
            self._delete_tag(repo, rest or "")
        else:
            self._tag(repo, repo.resolve(rest or "main"), json.loads(body)["tag"])

    def _objects(self: Any, deleted: list[str] | None) -> None:
        if deleted is not None:
            for oid in deleted:
                del self.hub.lfs[oid]
            self._json({})
            return
        about = {"filename": "train.parquet", "pushedAt": "2026-11-21T00:00:00.000Z"}
        self._json(
            [{"fileOid": oid, "oid": oid, "size": len(data), **about} for oid, data in self.hub.lfs.items()]
        )

    def _squash(self: Any, name: str, repo: Any, branch: str, message: str) -> None:
        files = repo.commits[repo.refs[branch]]
        kept = {commit for ref, commit in repo.refs.items() if ref != branch}
        for commit in [each for each in repo.commits if each not in kept]:
            del repo.commits[commit]
        self.hub.put(name, dict(files), whole=True)
        repo.titles[:] = [message]
        self._json({})

    def _delete_tag(self: Any, repo: Any, tag: str) -> None:
        if tag not in repo.tags:
            self._error(404, f"Invalid rev id: {tag}", "RevisionNotFound")
            return
        repo.tags.discard(tag)
        del repo.refs[tag]
        self._send(200, b"")

    def _tag(self: Any, repo: Any, commit: str | None, tag: str) -> None:
        if commit is None:
            self._error(404, "Invalid rev id", "RevisionNotFound")
        elif tag in repo.refs:
            self._error(409, f"Tag reference exists: {tag}")
        else:
            repo.refs[tag] = commit
            repo.tags.add(tag)
            self._json({})

    def _commit(self: Any, name: str, repo: Any, lines: list[dict[str, Any]]) -> None:
        files = dict(repo.commits[repo.refs["main"]])
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                if value.get("parentCommit", repo.refs["main"]) != repo.refs["main"]:
                    self._error(412, "A commit has happened since. Please refresh and try again.")
                    return
                repo.titles.append(value["summary"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.lfs[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = self.hub.put(name, files, whole=True)
        page = name.removeprefix("models/") if name.startswith("models/") else f"datasets/{name}"
        self._json(
            {
                "success": True,
                "commitOid": commit,
                "commitUrl": f"{self.hub.url}/{page}/commit/{commit}",
            }
        )


def _upload_mode(asked: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    data, big = files.get(asked["path"]), asked["path"].endswith(BIG)
    oid = None
    if data is not None:
        oid = (
            hashlib.sha256(data).hexdigest()
            if big
            else hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        )
    mode = "lfs" if big else "regular"
    return {"path": asked["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid}


def head_errors(card: str) -> list[str]:
    """What the Hub says against the head of a card; [] where it validates."""
    match = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    if match is None:
        return ["no metadata"]
    head = yaml.safe_load(match[1])
    errors = [f'"{key}" is required' for key in ("license", "configs") if key not in head]
    if head.get("license") not in _LICENCES:
        errors.append('"license" must be one of the licences')
    if head.get("license") == "other" and not head.get("license_name"):
        errors.append('"license_name" is required')
    errors += [
        f'"{each}" is no size category' for each in head.get("size_categories", []) if each not in _SIZES
    ]
    for config in head.get("configs", []):
        if not all({"split", "path"} <= set(each) for each in config["data_files"]):
            errors.append('"data_files" must have split and path')
    names = [config["config_name"] for config in head.get("configs", [])]
    if len(names) != len(set(names)) or "data" in names:
        errors.append('"config_name" is taken')
    return errors
