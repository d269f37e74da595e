"""Terms on training are known for a few families, refused before anything is spent, and never guessed."""

from pathlib import Path

import pytest

from tracemill.cli.main import app
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.preflight import check_teachers
from tracemill.flows.release.training_terms import training_terms
from tracemill.records.errors import ConfigError
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.presets import FRONTIER, OPEN, SIMULATED
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    CompatibleTeacherSettings,
    OpenRouterTeacherSettings,
    ReplaySettings,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
URL = "http://127.0.0.1:9/v1"
KNOWN: list[tuple[BaseTeacherSettings, bool | None]] = [
    (OpenRouterTeacherSettings(model="anthropic/claude-sonnet-5.5"), False),
    (OpenRouterTeacherSettings(model="openai/gpt-6.1-sol"), False),
    (OpenRouterTeacherSettings(model="google/gemini-3.8-flash"), False),
    (OpenRouterTeacherSettings(model="openai/gpt-oss-120b"), None),
    (OpenRouterTeacherSettings(model="deepseek/deepseek-v4.1-flash"), None),
    (OpenRouterTeacherSettings(model="nobody/knows"), None),
    (OpenRouterTeacherSettings(model="nobody/knows", enforce_distillable_text=True), True),
    (CompatibleTeacherSettings(model="openai/gpt-oss-120b", base_url=URL), None),
    (OpenRouterTeacherSettings(model="anthropic/claude-sonnet-5.5", terms="allowed"), True),
    (OpenRouterTeacherSettings(model="anthropic/claude-sonnet-5.5", terms="unknown"), None),
    (OpenRouterTeacherSettings(model="nobody/knows", terms="forbidden"), False),
    *((teacher, True) for teacher in OPEN.teachers),
    *((teacher, None) for teacher in SIMULATED.teachers),
]


@pytest.mark.parametrize(("teacher", "allowed"), KNOWN)
def test_what_is_known_of_a_teacher(teacher: BaseTeacherSettings, allowed: bool | None) -> None:
    found, said = training_terms(teacher)
    assert found is allowed
    assert said


def configured(folder: Path, text: str) -> RunSettings:
    path = folder / "run.toml"
    path.write_text(text + "\n[budget]\nmax_total_usd = 1\n")
    return load_settings(path, {})


def test_a_teacher_whose_terms_restrict_training_is_refused_until_they_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-simulated")
    said = (
        "terms of the teacher anthropic/claude-sonnet-5.5: Anthropic's terms forbid .*; expected answers "
        "that may be trained on; .* --accept-terms .accept_terms = true."
    )
    with pytest.raises(ConfigError, match=said):
        check_teachers(configured(tmp_path, "preset = 'frontier'"))
    check_teachers(configured(tmp_path, "preset = 'frontier'\naccept_terms = true"))
    check_teachers(configured(tmp_path, "preset = 'open'"))
    assert sum(training_terms(teacher)[0] is False for teacher in FRONTIER.teachers) == 3


def test_settings_newer_than_stored_results_leave_those_valid(tmp_path: Path) -> None:
    plain = OpenRouterTeacherSettings(model="m").model_dump()
    assert not {"terms", "reasoning_room"} & plain.keys()
    given = OpenRouterTeacherSettings(model="m", terms="allowed", reasoning_room=0).model_dump()
    assert given == plain | {"terms": "allowed", "reasoning_room": 0}
    assert not {"max_paid_attempts", "reconcile_after_s"} & ReplaySettings().request_fields().keys()
    runs = [configured(tmp_path, f"preset = 'frontier'\naccept_terms = {word}") for word in ("true", "false")]
    assert runs[0].fingerprint() == runs[1].fingerprint()


@pytest.mark.parametrize("command", ["run", "replay"])
def test_the_flag_accepts_them(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    Workspace.open(tmp_path / "w")
    asked = [command, "--workspace", str(tmp_path / "w"), "--preset", "frontier", "--max-usd", "1"]
    if command == "run":
        asked += ["--claude-code", str(EXAMPLES)]
    with pytest.raises(ConfigError, match=r"terms of the teacher .* give --accept-terms"):
        app(asked, standalone_mode=False)
    with pytest.raises(ConfigError, match="needs a key and OPENROUTER_API_KEY is not set"):
        app([*asked, "--accept-terms"], standalone_mode=False)
