"""What the repository offers beside its code: workflows that name what is there, templates, policies."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
GITHUB = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_release_workflow_runs_what_is_there() -> None:
    jobs = loaded(GITHUB / "workflows" / "release.yml")["jobs"]
    assert list(jobs) == ["build", "install", "publish"]
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert len(lines) >= 9
    named = {path for line in lines for path in re.findall(r"\b(?:scripts|configs|examples)/[\w.]+", line)}
    assert named == {"scripts/check_dist.py", "configs/demo.toml", "examples/open_release.py"}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    assert jobs["install"]["needs"] == "build"
    assert jobs["publish"]["needs"] == "install"
    assert not any("twine" in line or "pypi" in line.lower() for line in lines)


def test_what_is_supported_is_said_alike_everywhere() -> None:
    kinds = PROJECT["classifiers"]
    versions = [kind.rpartition(" ")[2] for kind in kinds if re.search(r"Python :: 3\.\d+$", kind)]
    matrix = loaded(GITHUB / "workflows" / "release.yml")["jobs"]["install"]["strategy"]["matrix"]
    assert matrix["python"] == versions == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert all(version in page for version in versions)
    assert {"ubuntu-latest", "macos-latest"} == set(matrix["os"])


@pytest.mark.parametrize(
    "path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_an_issue_template_has_what_github_wants(path: Path) -> None:
    found = loaded(path)
    if path.stem == "config":
        assert found["blank_issues_enabled"] is False
        assert all({"name", "url", "about"} == link.keys() for link in found["contact_links"])
        return
    assert {"name", "description", "body"} <= found.keys()
    ids = [part["id"] for part in found["body"] if part["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
    for part in found["body"]:
        assert part["type"] in ("markdown", "input", "textarea", "dropdown", "checkboxes")
        assert part["attributes"].get("label") or part["attributes"].get("value")


def test_links_of_the_security_page_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(targets) >= 4
    assert [target for target in targets if not (ROOT / target).exists()] == []
