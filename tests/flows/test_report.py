"""`release report`, `release audit` and `status` over the demo's release, and its page in a browser."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from chromium_page import CHROMIUM, chromium_page
from console_says import NO_BROWSER

from tracemill.data_cards.model.manifest import Manifest, read_manifest

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def work(demo: Any, tmp_path: Path) -> Path:
    """A copy of the demo's workspace."""
    assert demo.record["release"]["created"]
    return Path(shutil.copytree(demo.folder / "w", tmp_path / "w"))


def release_of(work: Path) -> tuple[Path, Manifest]:
    (path,) = (work / "releases" / "demo").glob("20*")
    return path, read_manifest(path)


def test_figures_agree_with_manifest_run_and_tables(demo: Any, work: Path, console: Run) -> None:
    path, manifest = release_of(work)
    summary = demo.record["summary"]
    done = console("status", "--workspace", work, "--json")
    figures = json.loads(done.stdout)["report"]
    assert figures == json.loads((path / "report.json").read_text())
    assert figures["rows"] == manifest.rows == demo.record["release"]["rows"]
    splits = {name: entry.rows for name, entry in manifest.tables["dpo"].splits.items()}
    assert figures["splits"] == splits == demo.record["release"]["splits"]
    stages = {stage["name"]: stage for stage in figures["funnel"]}
    assert stages["traces"]["count"] == manifest.funnel["traces"] == summary["traces"]
    assert stages["states"]["count"] == manifest.funnel["states"] == summary["states"]
    assert stages["pairs"]["count"] == sum(summary["pairs"].values())
    assert stages["kept pairs"]["parts"] == manifest.label_sources
    run, money = figures["run"], figures["money"]
    assert run["questions"] == manifest.funnel["questions asked"] == summary["asked"]
    assert run["answers"] == summary["calls"] == sum(one["answered"] for one in run["teachers"])
    assert money["spend_usd"] == manifest.spend_usd == summary["spent_usd"]
    assert money["cap_usd"] == manifest.cap_usd == 1.0
    assert sum(money["paid_usd"].values()) == pytest.approx(summary["spent_usd"])
    not_needed = sum(n for why, n in summary["not_asked"].items() if why.startswith("not needed"))
    assert 0 < run["stopping"]["calls"] <= not_needed
    assert run["stopping"]["usd"] > 0
    assert (run["gate"]["calls"], run["left_over"]) == (0, 0)
    assert money["projected_usd"] == money["spend_usd"]
    cells = {f"{cell['rejected']} -> {cell['chosen']}": cell["rows"] for cell in figures["operations"]}
    assert cells == manifest.operations
    losses = [(one["operator"], one["rows_in"], one["dropped"]) for one in figures["losses"]]
    assert losses == [(one.operator, one.rows_in, one.dropped) for one in manifest.losses]
    dropped = sum(each["dropped"] for each in figures["losses"])
    assert dropped == sum(summary["pairs"].values()) - manifest.rows
    assert sum(entry.rows for name, entry in manifest.tables.items() if name == "dropped") == dropped
    page = (path / "report.html").read_text()
    for shown in (f"<dd>{manifest.rows}</dd>", f"<dd>{summary['states']}</dd>", f"${manifest.spend_usd:.4f}"):
        assert shown in page


def test_show_says_the_same_on_a_terminal(work: Path, console: Run) -> None:
    _, manifest = release_of(work)
    said = console("status", "--workspace", work, "-v").stdout
    assert f"report of demo {manifest.version}" in said
    assert re.search(rf"kept pairs +{manifest.rows} ", said)
    assert re.search(rf"spent +\${manifest.spend_usd:.4f} +cap \$1\.00", said)
    titles = (
        "agreement of teachers",
        "pairs by operation",
        "most expensive traces",
        "dropped",
        "saved by early",
    )
    for title in titles:
        assert title in said


def test_a_report_is_written_again_and_a_wrong_name_is_one_line(work: Path, console: Run) -> None:
    path, manifest = release_of(work)
    (path / "report.html").unlink()
    done = console("release", "report", "--release", f"demo@{manifest.version}", "--workspace", work)
    assert done.stdout == f"{path / 'report.html'}\n"
    assert (path / "report.html").stat().st_size > 50_000
    assert console("release", "report", "--release", path, "--workspace", work, "--json").returncode == 0
    wrong = console("release", "report", "--release", "demo@2020.01.01", "--workspace", work)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert f"one such as {manifest.version}" in wrong.stderr


def test_an_audit_is_kept_after_every_key_and_goes_on(work: Path, console: Run) -> None:
    path, manifest = release_of(work)
    flags = ("--workspace", work, "--answers", "-")
    refused = console("release", "audit", "--workspace", work)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "--answers FILE" in refused.stderr
    strange = console("release", "audit", *flags, stdin="aax")
    assert strange.returncode == 2
    assert not (path / "audit.json").exists()
    first = console("release", "audit", *flags, "--seed", "3", stdin="a a\nr r u q")
    assert "2 of 3 pairs accepted: precision 0.67" in " ".join(first.stdout.split())
    kept = json.loads((path / "audit.json").read_text())
    assert list(kept["verdicts"].values()) == ["accept", "accept", "reject"]
    assert list(kept["verdicts"]) == kept["pair_ids"][:3]
    assert console("release", "audit", *flags, "--seed", "4", stdin="a").returncode == 2
    rest = len(kept["pair_ids"]) - 3
    last = console("release", "audit", *flags, "--json", stdin="a" * rest)
    found = json.loads(last.stdout)
    assert (found["judged"], found["accepted"], found["seed"]) == (rest + 3, rest + 2, 3)
    assert found["sample"] == min(50, manifest.rows)
    said = f"{found['accepted']} of {found['judged']} pairs accepted"
    assert said in (path / "README.md").read_text()
    assert said in (path / "report.html").read_text()
    assert (
        json.loads(console("status", "--workspace", work, "--json").stdout)["audit"]["accepted"] == rest + 2
    )


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=NO_BROWSER)
def test_the_page_works_in_a_browser_wide_and_narrow(work: Path) -> None:
    path, manifest = release_of(work)
    page = path / "report.html"
    assert page.stat().st_size < 3_000_000
    largest, rows = next(iter(manifest.operations.items()))
    rejected, _, chosen = largest.partition(" -> ")
    with chromium_page() as tab:
        for width, height in ((1440, 900), (390, 844)):
            tab.open(page.as_uri(), width, height)
            tab.wait("document.documentElement && document.documentElement.dataset.whole !== undefined")
            assert tab.evaluate("document.documentElement.scrollWidth") == width
            told = "document.getElementById('told').textContent"
            assert tab.evaluate(told) == f"{manifest.rows} pairs"
            cell = f"button[data-rejected={rejected}][data-chosen={chosen}]"
            tab.evaluate(f"document.querySelector('{cell}').click()")
            assert tab.evaluate(told) == f"{rows} of {manifest.rows} pairs"
            assert (
                tab.evaluate("document.querySelector('#pair h3').textContent") == f"{chosen} over {rejected}"
            )
        assert tab.errors == []
