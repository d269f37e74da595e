"""Fetch the source distribution of a package from a package index, without executing anything of it."""

import io
import os
import re
import tarfile
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import httpx

from tracemill.environments.task import Origin
from tracemill.records.errors import EnvironmentTaskError

_INDEX = "https://pypi.org/simple/"
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)")
_LINK = re.compile(r'href="([^"]+\.tar\.gz(?:#[^"]*)?)"')
_MOST_BYTES = 50_000_000


def is_requirement(text: str) -> bool:
    """Return whether a text is `name==version`."""
    return _REQUIREMENT.fullmatch(text) is not None


def fetch_sdist(requirement: str, folder: Path, index: str | None = None) -> tuple[Path, Origin]:
    """Download and unpack `name==version` below a folder; return its root and where it came from.

    The index is that of `PIP_INDEX_URL`, else PyPI, read by its simple API (PEP 503). Raises
    EnvironmentTaskError if there is no such source distribution.
    """
    matched = _REQUIREMENT.fullmatch(requirement)
    if matched is None:
        raise EnvironmentTaskError(f"{requirement!r} is no requirement", "name==version")
    name, version = re.sub(r"[-_.]+", "-", matched[1]).lower(), matched[2]
    base = (index or os.environ.get("PIP_INDEX_URL") or _INDEX).rstrip("/") + "/"
    try:
        with httpx.Client(follow_redirects=True, timeout=60) as client:
            page = client.get(urljoin(base, f"{name}/"), headers={"Accept": "text/html"}).raise_for_status()
            links = [urljoin(str(page.url), link.replace("&amp;", "&")) for link in _LINK.findall(page.text)]
            url = next((link for link in links if _is_version(link, name, version)), None)
            if url is None:
                raise EnvironmentTaskError(
                    f"the index has no source distribution {requirement}", "a version with a .tar.gz"
                )
            data = client.get(urldefrag(url)[0]).raise_for_status().content
    except httpx.HTTPError as error:
        raise EnvironmentTaskError(
            f"{requirement} could not be fetched ({type(error).__name__})", "an index that has it"
        ) from None
    if len(data) > _MOST_BYTES:
        raise EnvironmentTaskError(f"{requirement} has {len(data):,} bytes", f"{_MOST_BYTES:,} at most")
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        archive.extractall(folder, filter="data")
    roots = [path for path in folder.iterdir() if path.is_dir()]
    if len(roots) != 1:
        raise EnvironmentTaskError(f"{requirement} does not unpack to one folder", "a source distribution")
    return roots[0], Origin(name, version, urldefrag(url)[0].rpartition("/")[2], _licence(roots[0]))


def _is_version(link: str, name: str, version: str) -> bool:
    file = urldefrag(link)[0].rpartition("/")[2]
    stem = file.removesuffix(".tar.gz").lower()
    return re.sub(r"[-_.]+", "-", stem) == re.sub(r"[-_.]+", "-", f"{name}-{version}".lower())


def _licence(root: Path) -> str:
    """Return the licence that PKG-INFO names, `unknown` if it names none."""
    try:
        text = (root / "PKG-INFO").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    head = text.partition("\n\n")[0]
    found = re.search(r"^License-Expression: (.+)$", head, re.MULTILINE) or re.search(
        r"^Classifier: License :: OSI Approved :: (.+)$", head, re.MULTILINE
    )
    found = found or re.search(r"^License: (.{1,60})$", head, re.MULTILINE)
    return found[1].strip() if found else "unknown"
