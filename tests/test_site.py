"""The documentation as a site: it builds without a warning, and what its pages name is there."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built anew."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(out)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == ""
    return out


class _Loads(HTMLParser):
    """What a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") in ("canonical", "next", "prev"):
            return
        if address := given.get(LOADED.get(tag, "")):
            self.found.append(address)


def test_every_page_loads_files_of_the_site_alone(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 100
    loaded = 0
    for page in pages:
        parser = _Loads()
        parser.feed(page.read_text(encoding="utf-8"))
        for address in parser.found:
            if address.startswith("data:") or page.name == "404.html":
                continue
            assert "//" not in address, f"{page.name}: {address}"
            assert (page.parent / address.partition("?")[0]).is_file(), f"{page.name}: {address}"
            loaded += 1
    assert loaded > 300
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert not any(re.search(r"(@import|url\()\s*[\"']?https?:", style) for style in styles)


def test_every_page_of_the_repository_is_on_the_site(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        html = page.relative_to(DOCS).with_suffix(".html")
        assert (site / html.with_name(html.name.replace("README", "index"))).is_file(), page.name


def test_no_link_leads_out_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        for target in re.findall(r'href="([^"#:]+)(?:#[^"]*)?"', page.read_text(encoding="utf-8")):
            if page.name != "404.html":
                assert (page.parent / target).resolve().is_relative_to(site.resolve()), target


def test_diagrams_are_drawn_by_the_site_itself_or_stay_text(site: Path) -> None:
    page = (site / "architecture.html").read_text(encoding="utf-8")
    drawn = (ROOT / ".venv" / "mermaid.min.js").is_file()
    assert page.count('class="mermaid"') == (2 if drawn else 0)
    assert page.count("assets/mermaid.min.js") == drawn
    assert (site / "assets" / "mermaid.min.js").is_file() == drawn
    assert "mermaid.min.js" not in (site / "privacy.html").read_text(encoding="utf-8")


def test_every_test_that_a_page_names_is_there() -> None:
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("pitfalls.md", "claims.md")]
    named = {name for page in pages for name in re.findall(r"`(test_\w+)`", page)}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert len(named) >= 18
    assert named - there == set()
    paths = {path for page in pages for path in re.findall(r"\btests/[\w/.]+", page)}
    assert len(paths) >= 10
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    targets = {word for page in pages for word in re.findall(r"`make (\w+)", page)}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [word for word in targets if not re.search(rf"^{word}:", makefile, re.MULTILINE)] == []
