"""Publishing over real HTTP to a Hub on loopback: one commit and one tag, whatever happens on the way."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hub_releases import OF_THE_HUB, QUICK, REPO, TAG, empty_workspace, log_in, push
from hub_stub import READ_TOKEN, TOKEN, Hub, Request
from release_rows import DAY, SPEC, hindsight, normalized, pair, written

from tracemill.cli.main import main
from tracemill.data_cards.hub.hub_errors import TransientHubError, translate_hub_errors
from tracemill.data_cards.model.find_release import find_release
from tracemill.data_cards.model.manifest import read_manifest
from tracemill.data_cards.writing.write_release import write_release
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.preflight import run_preflight
from tracemill.flows.publish.list_versions import diff_listed_versions, list_releases
from tracemill.flows.publish.publish_run import PublishOptions, check_publishing, publish_release
from tracemill.flows.release.training_terms import training_terms
from tracemill.flows.run_state.publish_log import read_publish_log
from tracemill.flows.workspace_commands import release_workspace
from tracemill.records.errors import ConfigError, PrivacyError, ReleaseError
from tracemill.records.message import Message
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.presets import PRESETS

pytestmark = OF_THE_HUB
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(monkeypatch)


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    return empty_workspace(tmp_path)


def release(settings: RunSettings, *pairs: Any, days: int = 0, **changes: Any) -> Path:
    spec = SPEC.model_copy(update={"created": DAY + timedelta(days=days), **changes})
    rows = normalized(*(pairs or (pair(1), pair(2), hindsight(3))))
    return written(write_release(spec, rows, [], settings.workspace / "releases")).path


def commits(hub: Hub) -> list[str]:
    """Titles of the commits that were made, after the one of the Hub itself."""
    return hub.repos[REPO].titles


def uploads(hub: Hub) -> int:
    return sum(r.method == "PUT" and r.path.startswith("/_lfs/") for r in hub.log)


def failing(statuses: list[int], part: str = "/commit/") -> Callable[[Request], int]:
    return lambda request: statuses.pop(0) if part in request.path and statuses else 0


def test_a_release_is_one_commit_and_one_tag_and_comes_back_row_by_row(
    hub: Hub, settings: RunSettings, tmp_path: Path
) -> None:
    from datasets import load_dataset

    folder = release(settings)
    done = push(settings)
    repo = hub.repos[REPO]
    assert (done.pushed.created, done.pushed.version) == (True, TAG)
    assert (commits(hub), sorted(repo.tags), repo.private) == ([f"demo {TAG}"], [TAG], True)
    assert repo.refs[TAG] == repo.refs["main"] == done.pushed.commit
    assert done.said == [f"created private dataset {hub.url}/datasets/{REPO}"]
    assert "texts scanned, nothing found" in done.gate
    files = repo.commits[repo.refs["main"]]
    tables = {p.relative_to(folder).as_posix() for p in folder.glob("data/**/*.parquet")}
    page = {"report.html", "report.json"}
    assert set(files) == {".gitattributes", "README.md", "manifest.json", *page, *tables}
    assert f'load_dataset("{REPO}", "dpo"'.encode() in files["README.md"]
    assert read_publish_log(settings.workspace / "releases" / "demo")[TAG][0]["repo"] == REPO

    local = load_dataset(str(folder), "dpo", split="train", cache_dir=str(tmp_path / "a"))
    there = load_dataset(REPO, "dpo", revision=TAG, split="train", cache_dir=str(tmp_path / "b"))
    streamed = load_dataset(REPO, "dpo", revision=TAG, split="train", streaming=True)
    assert len(local) == 3
    assert list(there) == list(local)
    assert list(streamed) == list(local)
    texts = load_dataset(REPO, "dpo_json", revision=TAG, split="train", cache_dir=str(tmp_path / "b"))
    for row, plain in zip(local, texts, strict=True):
        for side in ("prompt", "chosen", "rejected"):
            opened = [
                {**m, "tool_calls": m["tool_calls"] and json.loads(m["tool_calls"])} for m in plain[side]
            ]
            assert opened == row[side]
        assert json.loads(plain["tools"]) == row["tools"]


def test_without_kingfisher_nothing_is_published(
    hub: Hub, settings: RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(settings)
    monkeypatch.setenv("TRACEMILL_KINGFISHER", "none")
    with pytest.raises(PrivacyError) as caught:
        push(settings)
    assert str(caught.value) == (
        "kingfisher is not installed and nothing is published without a second opinion; expected a second"
        " opinion; pip install kingfisher-bin, or set TRACEMILL_KINGFISHER to its binary"
    )
    assert hub.log == []


def test_the_same_content_again_makes_no_commit_and_uploads_nothing(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    push(settings)
    hub.log.clear()
    again = push(settings)
    assert not again.pushed.created
    assert commits(hub) == [f"demo {TAG}"]
    assert not [r for r in hub.log if r.method in ("POST", "PUT")]


def test_a_version_that_was_committed_and_not_tagged_is_tagged(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    hub.faults = failing([403], "/tag/")
    with pytest.raises(ReleaseError, match=r"answers 403 to tag"):
        push(settings)
    assert (commits(hub), hub.repos[REPO].tags) == ([f"demo {TAG}"], set())
    done = push(settings)
    assert (done.pushed.created, commits(hub)) == (False, [f"demo {TAG}"])
    assert hub.repos[REPO].refs[TAG] == hub.repos[REPO].refs["main"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_commit_that_fails_is_made_once_in_the_end(hub: Hub, settings: RunSettings, status: int) -> None:
    release(settings)
    hub.faults = failing([status, status])
    assert push(settings).pushed.created
    assert commits(hub) == [f"demo {TAG}"]
    assert sum("/commit/" in r.path for r in hub.log) == 3
    assert sorted(hub.repos[REPO].tags) == [TAG]


def test_a_commit_whose_answer_is_lost_is_found(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    lost = [True]
    hub.loses = lambda request: "/commit/" in request.path and bool(lost) and lost.pop()
    assert push(settings).pushed.created
    assert commits(hub) == [f"demo {TAG}"]
    assert sum("/commit/" in r.path for r in hub.log) == 1
    assert sorted(hub.repos[REPO].tags) == [TAG]


def test_a_lost_commit_that_somebody_has_built_on_is_not_made_again(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    lost = [True]

    def lose(request: Request) -> bool:
        if "/commit/" not in request.path or not lost:
            return False
        hub.put(REPO, {"README.md": b"edited"})
        return lost.pop()

    hub.loses = lose
    push(settings)
    assert sum("/commit/" in r.path for r in hub.log) == 1
    repo = hub.repos[REPO]
    assert repo.commits[repo.refs["main"]]["README.md"] == b"edited"


def test_a_hub_that_stays_down_is_one_line(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    hub.faults = failing([503] * 99)
    with pytest.raises(ReleaseError, match=r"answers 503 to commit to maker/pairs, 6 times"):
        push(settings)
    assert commits(hub) == []


def test_others_who_are_faster_are_kept_and_the_commit_made_once_on_theirs(
    hub: Hub, settings: RunSettings
) -> None:
    release(settings)
    push(settings)
    release(settings, *(pair(n) for n in (1, 2, 4)), days=1)
    raced = [True]

    def race(request: Request) -> int:
        if "/commit/" in request.path and raced:
            raced.pop()
            hub.put(REPO, {"NOTES.md": b"by hand"})
        return 0

    hub.faults = race
    assert push(settings, "2026.11.22").pushed.created
    repo = hub.repos[REPO]
    assert commits(hub) == [f"demo {TAG}", "demo 2026.11.22"]
    assert [r.status for r in hub.log if "/commit/" in r.path] == [200, 412, 200]
    assert repo.commits[repo.refs["main"]]["NOTES.md"] == b"by hand"
    assert repo.refs["2026.11.22"] == repo.refs["main"]


def test_the_same_release_pushed_by_two_at_once_is_committed_once(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    nested: list[Any] = []

    def race(request: Request) -> int:
        if "/commit/" in request.path and not nested:
            nested.append(None)
            from tracemill.data_cards.hub.push import HubPusher
            from tracemill.data_cards.hub.repo_state import open_hub

            folder = settings.workspace / "releases" / "demo" / TAG
            nested[0] = HubPusher(open_hub(), REPO, QUICK).push(folder, read_manifest(folder))
        return 0

    hub.faults = race
    done = push(settings)
    assert commits(hub) == [f"demo {TAG}"]
    assert nested[0].commit == done.pushed.commit == hub.repos[REPO].refs[TAG]


PUBLISH = """
import sys
from tracemill.cli.main import main
sys.argv = ["tracemill", "release", "publish", "--hub", sys.argv[1], "-w", sys.argv[2]]
main()
"""


def test_a_publisher_killed_in_the_upload_goes_on_and_makes_one_version(
    hub: Hub, settings: RunSettings
) -> None:
    release(settings)
    command = [sys.executable, "-c", PUBLISH, REPO, str(settings.workspace)]
    env = os.environ | {"HF_HUB_OFFLINE": "0"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

    def kill(request: Request) -> int:
        if request.method != "PUT" or len(hub.lfs) < 2:
            return 0
        child.send_signal(signal.SIGKILL)
        child.wait()
        return 503

    hub.faults = kill
    said = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL, said
    assert (commits(hub), hub.repos[REPO].tags) == ([], set())
    arrived = set(hub.lfs)
    assert len(arrived) >= 2
    hub.faults = lambda request: 0
    hub.log.clear()
    assert push(settings).pushed.created
    assert (commits(hub), sorted(hub.repos[REPO].tags)) == ([f"demo {TAG}"], [TAG])
    again = {r.path.removeprefix("/_lfs/") for r in hub.log if r.method == "PUT"}
    assert again
    assert not again & arrived


def test_with_xet_left_on_a_hub_without_it_gets_the_files_by_lfs(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    command = [sys.executable, "-c", PUBLISH, REPO, str(settings.workspace)]
    env = os.environ | {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert [r.status for r in hub.log if "/xet-write-token/" in r.path] == [404]
    assert (commits(hub), sorted(hub.repos[REPO].tags)) == ([f"demo {TAG}"], [TAG])
    assert uploads(hub) > 0


def test_tables_of_the_last_version_that_this_one_lacks_are_gone(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    push(settings)
    release(settings, pair(1), pair(2), days=1, views=())
    push(settings, "2026.11.22")
    repo = hub.repos[REPO]
    now = [p for p in repo.commits[repo.refs["main"]] if p.startswith("data/")]
    assert sorted(now) == ["data/dpo/train-00000-of-00001.parquet", "data/votes/train-00000-of-00001.parquet"]
    assert "data/sft/train-00000-of-00001.parquet" in repo.commits[repo.refs[TAG]]


def refused(hub: Hub, settings: RunSettings, match: str, asked: str | None = None, **order: Any) -> None:
    """One line, and nothing was sent but questions."""
    hub.log.clear()
    with pytest.raises((ReleaseError, PrivacyError), match=match) as caught:
        push(settings, asked, **order)
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert not [r for r in hub.log if r.method in ("POST", "PUT")]


def test_no_token_and_no_right_are_one_line_before_any_upload(
    hub: Hub, settings: RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(settings)
    monkeypatch.delenv("HF_TOKEN")
    refused(hub, settings, "no token for the Hub; expected.* set HF_TOKEN, or run `hf auth login`")
    monkeypatch.setenv("HF_TOKEN", READ_TOKEN)
    refused(hub, settings, "the token has no right to write to maker")
    monkeypatch.setenv("HF_TOKEN", "hf_unknownunknownunknown")
    refused(hub, settings, "the Hub answers 401")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for owner in ("stranger", "readers"):
        with pytest.raises(ReleaseError, match=f"no right to write to {owner}"):
            publish_release(settings, None, PublishOptions(f"{owner}/pairs", patience=QUICK))
    assert hub.repos == {}


def test_other_content_in_the_repository_or_under_the_version_is_refused(
    hub: Hub, settings: RunSettings
) -> None:
    release(settings)
    hub.put(REPO, {"model.bin": b"x", "README.md": b"# mine"}, private=True)
    refused(hub, settings, r"holds 1 files that no release of tracemill wrote \(model\.bin\)")
    hub.clear()
    hub.put(REPO, {".gitattributes": b""}, tag=TAG, private=True)
    refused(hub, settings, rf"maker/pairs has version {TAG} with other content")
    hub.clear()
    push(settings)
    assert commits(hub) == [f"demo {TAG}"]
    other = load_settings(None, {"workspace": str(settings.workspace.parent / "v"), "release": {"hub": REPO}})
    Workspace.open(other.workspace)
    release(other, pair(9))
    refused(hub, other, rf"maker/pairs has version {TAG} with other content")
    release(other, pair(9), name="elsewhere")
    refused(hub, other, "maker/pairs holds the release 'demo'", "elsewhere")
    release(settings, pair(1), days=3)
    push(settings, "2026.11.24", accept_drift=True)
    release(other, pair(8), days=1)
    refused(hub, other, r"is at version 2026\.11\.24 and this is 2026\.11\.22", "2026.11.22")


def test_simulated_rows_and_damaged_releases_are_refused(hub: Hub, settings: RunSettings) -> None:
    folder = release(settings, pair(1), pair(2, simulated=True))
    refused(hub, settings, "1 of 2 rows of demo@2026.11.21 are simulated")
    assert hub.log == []
    folder = release(settings, days=1)
    table = folder / "data" / "dpo" / "train-00000-of-00001.parquet"
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    refused(hub, settings, r"train-00000-of-00001\.parquet was changed", folder.name)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("license: unknown\n", "", "lacks license"),
        ("\n## Privacy\n", "\n## Other\n", "lacks section 'Privacy'"),
        ("- {config_name: votes,", "- {config_name: vote,", "lacks config 'votes'"),
        ("---\npretty", "pretty", "has no YAML head"),
    ],
)
def test_a_card_that_lacks_something_is_refused(
    hub: Hub, settings: RunSettings, old: str, new: str, line: str
) -> None:
    card = release(settings) / "README.md"
    text = card.read_text()
    assert old in text
    card.write_text(text.replace(old, new, 1))
    refused(hub, settings, line)


def test_a_head_the_hub_refuses_is_one_line_before_any_upload(hub: Hub, settings: RunSettings) -> None:
    card = release(settings) / "README.md"
    card.write_text(card.read_text().replace("license: unknown", "license: my-own", 1))
    with pytest.raises(ReleaseError, match='"license" must be one of the licences'):
        push(settings)
    assert (uploads(hub), commits(hub)) == (0, [])


def test_what_the_gate_finds_is_not_uploaded(hub: Hub, settings: RunSettings) -> None:
    key = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    release(settings, pair(1, rejected=(Message("assistant", f"export GITHUB_TOKEN={key}"),)))
    with pytest.raises(PrivacyError, match="the release is refused") as caught:
        push(settings)
    assert key not in str(caught.value)
    assert hub.repos == {}


def test_a_public_repository_wants_the_word_typed(hub: Hub, settings: RunSettings) -> None:
    release(settings)
    hub.put(REPO, {".gitattributes": b""}, private=False)
    refused(hub, settings, "maker/pairs is public; add --public")
    assert push(settings, public=True).pushed.created
    hub.clear()
    push(settings, public=True)
    assert not hub.repos[REPO].private
    hub.clear()
    hub.put(REPO, {".gitattributes": b""}, private=True)
    assert "stays private" in push(settings, public=True).said[0]
    assert hub.repos[REPO].private


def test_a_release_far_from_the_last_is_refused_until_it_is_accepted(hub: Hub, settings: RunSettings) -> None:
    release(settings, *(pair(n) for n in range(4)), spend_usd=0.4)
    push(settings)
    long = (Message("assistant", "x" * 400),)
    others = [pair(n, rejected_operation="read", rejected=long) for n in range(4)]
    release(settings, *others, days=1, spend_usd=4.0)
    refused(
        hub,
        settings,
        r"2026\.11\.22 drifts from 2026\.11\.21: operations: 100% .*; USD a pair: 0\.1000 to 1\.0000",
        "2026.11.22",
    )
    done = push(settings, "2026.11.22", accept_drift=True)
    assert len(done.said) == 3
    assert commits(hub) == [f"demo {TAG}", "demo 2026.11.22"]


def test_rows_that_were_taken_out_again_leave_main_and_an_old_version_says_where_main_is(
    hub: Hub, settings: RunSettings
) -> None:
    old, new, without = TAG, "2026.11.22", "2026.11.22.1"
    release(settings, pair(1), pair(2))
    push(settings)
    gone = release(settings, pair(1), pair(2), hindsight(3), days=1)
    push(settings, new, accept_drift=True)
    assert push(settings, old).said == [f"main of {REPO} is at another version, {new}"]
    shutil.rmtree(gone)  # as `tracemill privacy forget` does, after which it names the next version
    release(settings, pair(1), pair(2), version=without)
    done = push(settings, without, accept_drift=True)
    assert (done.pushed.created, done.pushed.version) == (True, without)
    repo = hub.repos[REPO]
    on_main = json.loads(repo.commits[repo.refs["main"]]["manifest.json"])
    assert (on_main["version"], on_main["rows"]) == (without, 2)
    assert commits(hub) == [f"demo {version}" for version in (old, new, without)]
    assert push(settings, without).said == []


def test_releases_are_listed_here_and_there_and_compared(hub: Hub, settings: RunSettings) -> None:
    release(settings, pair(1), pair(2), hindsight(3))
    push(settings)
    changed = pair(2, chosen=(Message("assistant", "Another way."),))
    release(settings, pair(1), changed, pair(5), days=1)
    work = Workspace.open(settings.workspace)
    here = list_releases(work, None)
    assert [(e["version"], e["rows"], e["pushed"]) for e in here] == [(TAG, 3, [REPO]), ("2026.11.22", 3, [])]
    push(settings, "2026.11.22", accept_drift=True)
    empty = Workspace.open(settings.workspace.parent / "v")
    there = list_releases(empty, REPO)
    assert [(e["version"], e["local"], e["rows"]) for e in there] == [
        (TAG, False, 3),
        ("2026.11.22", False, 3),
    ]
    assert there[1]["content"] == find_release("demo", work.releases_dir).manifest.content_fingerprint
    moved = diff_listed_versions(work, TAG, "demo@2026.11.22")
    assert moved["pairs"] == {
        "added": ["claude_code-0005:0:1:teachers"],
        "removed": ["claude_code-0003:0:1:hindsight"],
        "changed": ["claude_code-0002:0:1:teachers"],
    }
    assert moved["labels"] == {"added": [], "removed": [], "changed": []}
    assert "length of chosen by rejected" not in [each["figure"] for each in moved["figures"]]
    changes = find_release("demo", work.releases_dir).manifest.changes
    assert [(c.version, c.rows, c.added, c.removed, c.changed) for c in changes] == [
        (TAG, 3, None, None, None),
        ("2026.11.22", 3, 1, 1, 1),
    ]
    for asked in ("2026.11.20", "other", "demo@2026.11.20"):
        with pytest.raises(ReleaseError, match=r"such as (demo@)?2026\.11\.2"):
            find_release(asked, work.releases_dir)


def test_a_list_of_the_hub_asks_for_no_right_to_write(
    hub: Hub, settings: RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(settings)
    push(settings)
    empty = Workspace.open(settings.workspace.parent / "v")
    for token, who in ((READ_TOKEN, "for this token"), ("", "without a token")):
        monkeypatch.setenv("HF_TOKEN", token)
        hub.repos[REPO].private = True
        with pytest.raises(
            ReleaseError, match=f"{REPO} is not on the Hub, or not {who}; expected .* read it;"
        ):
            list_releases(empty, REPO)
        hub.repos[REPO].private = False
        assert [each["version"] for each in list_releases(empty, REPO)] == [TAG]
        hub.faults = lambda request: 403
        with pytest.raises(ReleaseError, match=r"answers 403 to a look at .* right to do that"):
            list_releases(empty, REPO)
        hub.faults = lambda request: 0


@pytest.mark.parametrize("damaged", ["{", "[]", '{"1": [2]}'])
def test_a_damaged_note_of_what_was_pushed_is_told_before_anything_goes_out(
    hub: Hub, settings: RunSettings, damaged: str
) -> None:
    folder = release(settings)
    note = folder.parent / "published.json"
    note.write_text(damaged)
    for command in (lambda: push(settings), lambda: list_releases(Workspace.open(settings.workspace), None)):
        said = r"published\.json is damaged; expected a file written by `tracemill release publish`; remove"
        with pytest.raises(ReleaseError, match=said):
            command()
    assert hub.repos == {}
    note.unlink()
    push(settings)
    note.unlink()
    assert push(settings).pushed.created is False
    assert [each["pushed"] for each in list_releases(Workspace.open(settings.workspace), None)] == [[REPO]]


@pytest.mark.slow
def test_a_release_of_the_workspace_goes_to_the_hub_where_the_configuration_says_so(
    hub: Hub, alone: Any, tmp_path: Path
) -> None:
    work = shutil.copytree(alone.folder / "w", tmp_path / "w")
    settings = load_settings(None, {"workspace": str(work), "release": {"hub": REPO}})
    outcome = release_workspace(settings)
    assert outcome.pushed.splitlines()[0] == REPO
    assert commits(hub) == [f"traces {outcome.version}"]
    assert sorted(hub.repos[REPO].tags) == [outcome.version]
    assert "unchanged" not in outcome.pushed
    again = release_workspace(settings)
    assert f"unchanged since version {outcome.version}" in again.pushed
    assert len(commits(hub)) == 1


def settings_of(settings: RunSettings) -> dict[str, Any]:
    sessions = [str(ROOT / "examples" / "sessions" / "claude_code")]
    workspace = str(settings.workspace.parent / "new")
    return {"workspace": workspace, "sources": {"claude_code": sessions}, "release": {"hub": REPO}}


def test_a_run_that_could_not_publish_does_not_start(
    hub: Hub, settings: RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_publishing(settings)
    assert check_publishing(load_settings(None, {})) is None
    simulated = {"release": {"hub": REPO}, "preset": "simulated", "budget": {"max_total_usd": 1}}
    with pytest.raises(ConfigError, match=r"release\.hub is set and simulated/deepseek-a is simulated"):
        check_publishing(load_settings(None, simulated))
    monkeypatch.setenv("HF_TOKEN", READ_TOKEN)
    with pytest.raises(ReleaseError, match="no right to write"):
        run_preflight(load_settings(None, settings_of(settings)))
    assert hub.repos == {}


def test_no_token_is_ever_said() -> None:
    def refused() -> None:
        raise OSError(f"Authorization: Bearer {TOKEN}, also {READ_TOKEN} and Bearer abc.def")

    with pytest.raises(TransientHubError) as caught:
        translate_hub_errors("a look", refused)
    assert str(caught.value) == (
        "the Hub cannot be reached to a look (Authorization: Bearer [token], also [token] and Bearer [token])"
    )


def test_the_terms_of_teachers_are_told_apart() -> None:
    found = {t.model: training_terms(t)[0] for preset in PRESETS.values() for t in preset.teachers}
    assert {model for model, allowed in found.items() if allowed is False} == {
        "anthropic/claude-sonnet-5.5",
        "openai/gpt-6.1-sol",
        "google/gemini-3.1-pro-preview",
    }
    assert [training_terms(t)[0] for t in PRESETS["open"].teachers] == [True] * 4
    assert [training_terms(t)[0] for t in PRESETS["simulated"].teachers] == [None] * 4


def test_the_commands_say_what_they_did(
    hub: Hub, settings: RunSettings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: str) -> tuple[object, str, str]:
        words = ["tracemill", *arguments, "--workspace", str(settings.workspace)]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as stop:
            main()
        return (stop.value.code or 0, *capsys.readouterr())

    release(settings)
    assert command("release", "publish")[:2] == (2, "")
    code, told, _ = command("release", "publish", "--hub", REPO)
    assert (code, f"pushed version {TAG}" in told) == (0, True)
    _, again, _ = command("release", "publish", "--release", TAG, "--hub", REPO, "--json")
    assert json.loads(again)["created"] is False
    _, listed, _ = command("release", "list", "--hub", REPO)
    assert f"demo@{TAG}" in listed
    assert REPO in listed
    _, compared, _ = command("release", "diff", TAG, f"demo@{TAG}")
    assert "unchanged" in compared
    code, _, wrong = command("release", "publish", "--hub", "no-owner")
    assert (code, "release.hub: a dataset of the Hub as OWNER/NAME" in wrong) == (2, True)
    assert TOKEN not in told + again + listed + wrong


def test_an_endpoint_that_is_no_address_is_told_at_once() -> None:
    from huggingface_hub.utils import httpx

    def asking() -> None:
        raise httpx.UnsupportedProtocol("Request URL is missing an 'http://' or 'https://' protocol.")

    with pytest.raises(ReleaseError) as caught:
        translate_hub_errors("a look", asking)
    assert str(caught.value) == (
        "a look failed (Request URL is missing an 'http://' or 'https://' protocol.); "
        "expected an address of a Hub; correct HF_ENDPOINT"
    )
