"""A type of teachers of an installed package: asked like ours, without a change to anything but itself."""

import json
from pathlib import Path

import pytest
from installed_packages import called_with, install_module, refusal_with

from tracemill.flows.config.run_settings import load_settings
from tracemill.records.errors import ConfigError
from tracemill.teachers.registry import TEACHERS

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
GROUP = "tracemill.teachers"
ECHO = """
import json
from dataclasses import replace

from tracemill.records.identity import request_key
from tracemill.records.message import Action, ToolCall
from tracemill.teachers.core.teacher_protocol import AttemptResult, reply_to
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings
from tracemill.teachers.kind import TeacherKind
from tracemill.teachers.offline.offline_teacher import OfflineTeacher


class EchoSettings(BaseTeacherSettings):
    type: str = "echo"
    command: str = "git status"
    server: str | None = None

    def sends_to(self, environ):
        return self.server


class Echo(OfflineTeacher):
    simulated = False

    def __init__(self, settings):
        super().__init__(settings, settings.prices)
        self.command = settings.command

    def request_key(self, question, sample):
        return request_key(
            prompt_id=question.prompt_id,
            model=self.model,
            provider="echo",
            sampling={"command": self.command},
            reasoning={},
            presentation=question.presentation,
            sample=sample,
        )

    def bound_nanousd(self, question):
        return 0

    async def ask(self, question, sample):
        reply = reply_to(self, question, sample, self.request_key(question, sample))
        call = ToolCall("call_1", "Bash", json.dumps({"command": self.command}))
        return AttemptResult(replace(reply, model=self.model, action=Action("", (call,))), 0)


KIND = TeacherKind(EchoSettings, lambda settings, context: Echo(settings))
"""
MODELS = ("deepseek/echo", "qwen/echo", "z-ai/echo", "moonshotai/echo")


def _config(folder: Path, more: str = "") -> Path:
    path = folder / "run.toml"
    teachers = "".join(f"[[teachers]]\ntype = 'echo'\nmodel = '{model}'\n{more}\n" for model in MODELS)
    path.write_text(f"workspace = 'w'\n[budget]\nmax_total_usd = 1\n{teachers}")
    return path


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    return install_module(folder, "echo_teacher", ECHO, {GROUP: {"echo": "echo_teacher:KIND"}})


@pytest.fixture(scope="module")
def ingested(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("echo")
    done = called_with(packages, "ingest", SESSIONS, "--workspace", folder / "w")
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_it_answers_in_a_replay_and_its_votes_make_pairs(packages: Path, ingested: Path) -> None:
    config = _config(ingested)
    done = called_with(packages, "replay", config, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["summary"]["calls"] > 40
    shown = called_with(packages, "replay", config, "--dry-run", "--json")
    assert json.loads(shown.stdout)["send_nothing"] == sorted(MODELS)
    assert called_with(packages, "label", config).returncode == 0
    listed = called_with(packages, "status", "-w", ingested / "w", "--source", "teachers", "--pairs", "100")
    assert listed.stdout.count("git status") > 5


def test_it_is_asked_consent_for_where_it_sends(packages: Path, ingested: Path) -> None:
    config = _config(ingested, "server = 'https://echo.example/v1'\ncommand = 'ls'")
    assert "https://echo.example" in refusal_with(packages, "replay", config)
    shown = json.loads(called_with(packages, "replay", config, "--dry-run", "--json").stdout)
    assert (shown["send_nothing"], shown["not_shown"]) == ([], sorted(MODELS))


def test_its_keys_are_checked_like_ours(packages: Path, ingested: Path) -> None:
    config = _config(ingested, "comand = 'ls'")
    assert "unknown key 'teachers.0.comand'" in refusal_with(packages, "doctor", config)


def test_a_type_that_nobody_gives_names_those_there_are(packages: Path, ingested: Path) -> None:
    config = _config(ingested)
    config.write_text(config.read_text().replace("'echo'", "'ekko'"))
    said = refusal_with(packages, "doctor", config)
    assert "teachers.0: there is no teacher type 'ekko'; expected openrouter, " in said
    assert "recorded, handwritten, echo" in said
    assert (said.count("ekko"), said.strip().endswith("(and 1 more)")) == (3, True)  # of four teachers
    with pytest.raises(ConfigError, match="a teacher has no `type`; expected one of openrouter, "):
        load_settings(None, {"teachers": [{"model": "m"}]})


def test_two_of_one_name_and_what_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    config = _config(tmp_path)
    taken = install_module(tmp_path / "a", "mine", ECHO, {GROUP: {"simulated": "mine:KIND"}})
    assert "mine and tracemill both give a teacher type 'simulated'" in refusal_with(taken, "doctor", config)
    both = install_module(tmp_path / "b", "one", ECHO, {GROUP: {"echo": "one:KIND"}})
    install_module(both, "two", ECHO, {GROUP: {"echo": "two:KIND"}})
    assert "two and one both give a teacher type 'echo'" in refusal_with(both, "doctor", config)
    broken = install_module(tmp_path / "c", "broken", "import nowhere", {GROUP: {"echo": "broken:KIND"}})
    said = refusal_with(broken, "doctor", config)
    assert "the teacher type 'echo' of broken cannot be imported (ModuleNotFoundError)" in said
    other = install_module(tmp_path / "d", "other", "KIND = 3", {GROUP: {"echo": "other:KIND"}})
    assert (
        "the teacher type 'echo' of a package is not valid; expected a TeacherKind whose settings have that "
        "name" in refusal_with(other, "doctor", config)
    )


def test_our_own_types_ask_no_package(tmp_path: Path) -> None:
    broken = install_module(
        tmp_path / "site", "broken", "import nowhere", {GROUP: {"simulated": "broken:KIND"}}
    )
    config = tmp_path / "run.toml"
    models = ("glm-a", "qwen-a", "kimi-a")
    ours = "".join(f"[[teachers]]\ntype = 'simulated'\nmodel = 'simulated/{model}'\n" for model in models)
    config.write_text(f"[budget]\nmax_total_usd = 1\n{ours}")
    assert "ok    teachers: simulated/glm-a" in called_with(broken, "doctor", config).stdout


def test_every_type_has_its_own_name_in_its_settings() -> None:
    assert [TEACHERS.get(name).settings.model_fields["type"].default for name in TEACHERS.names()] == [
        "openrouter",
        "openai_compatible",
        "simulated",
        "recorded",
        "handwritten",
    ]


def test_a_type_is_not_that_of_other_settings() -> None:
    for kind in TEACHERS:
        with pytest.raises(ValueError, match="type is"):
            kind.settings.model_validate({"type": "other", "model": "m"} | _wanted(kind.name))


def _wanted(name: str) -> dict[str, str]:
    wanted = {"openai_compatible": {"base_url": "http://h/v1"}}
    wanted |= {name: {"path": "t"} for name in ("recorded", "handwritten")}
    return wanted.get(name, {})
