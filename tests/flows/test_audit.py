"""An audit: keys on a real terminal, and what it found on the card of a published version, over real HTTP."""

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_releases import OF_THE_HUB, REPO, TAG, empty_workspace, log_in, push
from hub_stub import Hub, Request
from release_rows import DAY, SPEC, hindsight, normalized, pair, written

from tracemill.data_cards.writing.write_release import write_release
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.release.audit_run import run_audit
from tracemill.records.errors import ReleaseError

pytestmark = OF_THE_HUB


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(monkeypatch)


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    """A workspace with a release of three pairs."""
    made = empty_workspace(tmp_path)
    spec = SPEC.model_copy(update={"created": DAY})
    rows = normalized(pair(1), pair(2), hindsight(3))
    written(write_release(spec, rows, [], made.workspace / "releases"))
    return made


def judge(settings: RunSettings, keys: str, capsys: pytest.CaptureFixture[str], **options: Any) -> str:
    answers = settings.workspace.parent / "keys"
    answers.write_text(keys)
    run_audit(None, settings.workspace, answers, options.get("seed"), options.get("as_json", False))
    return capsys.readouterr().out


def card(hub: Hub, at: str = "main") -> str:
    repo = hub.repos[REPO]
    return repo.commits[repo.refs[at]]["README.md"].decode()


def test_an_audit_of_a_published_version_is_one_commit_and_the_tag_stays(
    hub: Hub, settings: RunSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    pushed = push(settings).pushed.commit
    repo = hub.repos[REPO]
    hub.put(REPO, {"README.md": card(hub).replace("## Known limits", "By hand.\n\n## Known limits").encode()})
    before = repo.commits[repo.refs["main"]]
    said = judge(settings, "aa", capsys, seed=3)
    assert (
        f"run `tracemill release publish --release demo@{TAG} --hub {REPO}` to put it on the card there"
        in said
    )
    hub.log.clear()
    done = push(settings)
    assert repo.titles == [f"demo {TAG}", f"demo {TAG}: audit"]
    assert not done.pushed.created
    assert done.audit_commit == repo.refs["main"]
    assert repo.refs[TAG] == pushed
    figure = "2 of 2 pairs accepted: precision 1.00 (95 %: 0.34 to 1.00; seed 3, 1 of the sample left)"
    assert figure in card(hub)
    assert "By hand." in card(hub)
    assert "Nobody has looked at a sample" in card(hub, TAG)
    after = repo.commits[repo.refs["main"]]
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"README.md", "audit.json", "report.html"}
    assert f"audit on its card, commit {done.audit_commit[:12]}" in done.line()
    assert done.said == [f"the card on main says: {figure}"]
    assert not [r for r in hub.log if r.method == "PUT"]


def test_the_same_audit_again_makes_no_commit_and_one_that_went_on_one_more(
    hub: Hub, settings: RunSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    hint = f"--hub {REPO}` to put it on the card there"
    assert hint not in judge(settings, "a", capsys)  # it is nowhere yet
    push(settings)
    assert "1 of 1 pairs accepted" in card(hub, TAG)
    hub.log.clear()
    assert push(settings).audit_commit is None
    assert not [r for r in hub.log if r.method in ("POST", "PUT")]
    assert hint not in judge(settings, "q", capsys)
    assert hint in judge(settings, "r", capsys)
    assert push(settings).audit_commit == hub.repos[REPO].refs["main"]
    assert push(settings).audit_commit is None
    assert hint not in judge(settings, "q", capsys)
    assert "1 of 2 pairs accepted: precision 0.50" in card(hub)
    assert hub.repos[REPO].titles == [f"demo {TAG}", f"demo {TAG}: audit"]


def test_a_lost_answer_is_found_and_a_faster_commit_is_kept(
    hub: Hub, settings: RunSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    push(settings)
    judge(settings, "ara", capsys)
    moved, lost = [True], [True]

    def race(request: Request) -> int:
        if "/commit/" in request.path and moved:
            moved.pop()
            hub.put(REPO, {"NOTES.md": b"by hand"})
        return 0

    hub.faults = race
    hub.loses = lambda request: (
        request.status == 200 and "/commit/" in request.path and bool(lost and lost.pop())
    )
    done = push(settings)
    repo = hub.repos[REPO]
    assert done.audit_commit == repo.refs["main"]
    assert repo.titles == [f"demo {TAG}", f"demo {TAG}: audit"]
    assert [r.status for r in hub.log if "/commit/" in r.path] == [200, 412, 200]
    assert repo.commits[repo.refs["main"]]["NOTES.md"] == b"by hand"


def test_an_audit_that_cannot_go_there_uploads_nothing(
    hub: Hub, settings: RunSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(settings, "a", capsys, seed=3)
    push(settings)
    folder = settings.workspace / "releases" / "demo" / TAG
    (folder / "audit.json").unlink()
    judge(settings, "ra", capsys, seed=4)
    hub.log.clear()
    with pytest.raises(ReleaseError, match=r"has an audit of another sample \(seed 3, 1 judged\)"):
        push(settings)
    assert not [r for r in hub.log if r.method in ("POST", "PUT")]
    hub.put(REPO, {"audit.json": b"{}"})
    with pytest.raises(ReleaseError, match=r"audit\.json of maker/pairs cannot be read"):
        push(settings)
    repo = hub.repos[REPO]
    later = json.loads(repo.commits[repo.refs["main"]]["manifest.json"]) | {"content_fingerprint": "other"}
    hub.put(REPO, {"manifest.json": json.dumps(later).encode()})
    assert push(settings).audit_commit is None
    hub.put(REPO, {"manifest.json": (folder / "manifest.json").read_bytes(), "README.md": b"mine"})
    repo.commits[repo.refs["main"]].pop("audit.json")
    with pytest.raises(ReleaseError, match="the card of maker/pairs has no section on audits"):
        push(settings)
    repo.private = False
    with pytest.raises(ReleaseError, match="maker/pairs is public; add --public"):
        push(settings)
    assert repo.titles == [f"demo {TAG}"]


KEYS = "q stop, to go on later"
AUDIT = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from tracemill.cli.main import main
sys.argv = ["tracemill", "release", "audit", *sys.argv[1:]]
main()
"""


class Terminal:
    """`tracemill release audit` on a pseudo-terminal of its own."""

    def __init__(self, *arguments: object) -> None:
        self.here, there = pty.openpty()
        command = [sys.executable, "-c", AUDIT, *map(str, arguments)]
        env = os.environ | {"COLUMNS": "100", "LINES": "60", "TERM": "xterm"}
        self.child = subprocess.Popen(
            command, stdin=there, stdout=there, stderr=there, env=env, start_new_session=True
        )
        os.close(there)
        self.seen = ""

    def wait_for(self, *texts: str) -> None:
        """Reads on until these were shown one after the other; what was shown up to there is read once."""
        for text in texts:
            while text not in self.seen:
                self.seen += self._more()
            self.seen = self.seen[self.seen.index(text) + len(text) :]

    def press(self, key: str) -> None:
        os.write(self.here, key.encode())

    def end(self) -> tuple[int, str]:
        """The exit code and the rest of what was shown."""
        while more := self._more(last=True):
            self.seen += more
        os.close(self.here)
        return self.child.wait(), self.seen

    def _more(self, last: bool = False) -> str:
        if not select.select([self.here], [], [], 60)[0]:
            raise TimeoutError(f"nothing more after {self.seen!r}")
        try:
            data = os.read(self.here, 65536)
        except OSError:  # Linux: the other end is closed
            data = b""
        assert data or last, f"the terminal closed after {self.seen!r}"
        return data.decode(errors="replace")


@pytest.fixture
def terminal(settings: RunSettings) -> Iterator[Callable[..., Terminal]]:
    open_: list[Terminal] = []

    def start(*arguments: object) -> Terminal:
        open_.append(Terminal(*arguments, "--workspace", settings.workspace))
        return open_[-1]

    yield start
    for each in open_:
        each.child.kill()
        each.child.wait()


def verdicts(settings: RunSettings) -> list[str]:
    path = settings.workspace / "releases" / "demo" / TAG / "audit.json"
    return list(json.loads(path.read_text())["verdicts"].values())


def test_keys_of_a_real_terminal_accept_reject_undo_stop_and_go_on(
    settings: RunSettings, terminal: Callable[..., Terminal]
) -> None:
    audit = terminal("--seed", "3")
    audit.wait_for("1 of 3 ", KEYS)
    audit.press("a")
    audit.wait_for("2 of 3 ", KEYS)
    for key in ("x", "\x1b[A", "aa", "r"):  # another key, an arrow key and a paste are no answer
        audit.press(key)
        if key != "r":
            audit.wait_for(KEYS)
    audit.wait_for("3 of 3 ", KEYS)
    assert verdicts(settings) == ["accept", "reject"]
    audit.press("u")
    audit.wait_for("2 of 3 ", KEYS)
    assert verdicts(settings) == ["accept"]
    audit.press("q")
    code, said = audit.end()
    assert code == 0
    assert "1 of 1 pairs accepted: precision 1.00" in said
    again = terminal("--release", "demo@latest")
    again.wait_for("2 of 3 ", KEYS)
    again.press("\x03")
    assert again.end()[0] == 0
    assert verdicts(settings) == ["accept"]
    last = terminal()
    last.wait_for("2 of 3 ", KEYS)
    last.press("R")
    last.wait_for("3 of 3 ", KEYS)
    last.press("a")
    code, said = last.end()
    assert code == 0
    assert "2 of 3 pairs accepted: precision 0.67 (95 %: 0.67 to 0.67; seed 3)" in " ".join(said.split())
    assert verdicts(settings) == ["accept", "reject", "accept"]
