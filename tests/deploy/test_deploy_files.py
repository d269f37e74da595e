"""The files of `deploy/` as far as they can be checked without Docker and Kubernetes."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from prefect.server.schemas.actions import WorkPoolCreate
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typer.main import get_command

from tracemill.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
BIN = Path(sys.executable).parent


# ---------------------------------------------------------------- Compose


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Build(_Strict):
    context: str
    dockerfile: str


class _Health(_Strict):
    test: list[str] = Field(min_length=2)
    interval: str
    timeout: str
    retries: int


class _Condition(_Strict):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]


class _Service(_Strict):
    """The keys of a service that are used, of https://github.com/compose-spec/compose-spec."""

    image: str
    build: _Build | None = None
    restart: Literal["no", "always", "on-failure", "unless-stopped"]
    command: list[str] | None = None
    environment: dict[str, str] = {}
    volumes: list[str] = []
    ports: list[str] = []
    depends_on: dict[str, _Condition] = {}
    healthcheck: _Health | None = None
    stop_grace_period: str | None = None


class _Compose(_Strict):
    name: str
    services: dict[str, _Service]
    volumes: dict[str, None]


TEXT = (DEPLOY / "compose.yaml").read_text()
COMPOSE = _Compose.model_validate(yaml.safe_load(TEXT))


def test_the_services_of_compose_refer_to_what_is_there() -> None:
    assert COMPOSE.services.keys() == {"postgres", "prefect-server", "worker", "webhook", "s3"}
    used: set[str] = set()
    for service in COMPOSE.services.values():
        for name, condition in service.depends_on.items():
            healthy = condition.condition == "service_healthy"
            assert not healthy or COMPOSE.services[name].healthcheck is not None
        for volume in service.volumes:
            source = volume.replace("${SESSIONS:?}", "/sessions").partition(":")[0]
            if source.startswith("./") and source != "./config":
                assert (DEPLOY / source).exists(), source
            elif not source.startswith((".", "/")):
                used.add(source)
        assert all(port.startswith("127.0.0.1:") for port in service.ports)
        if service.build is not None:
            assert (DEPLOY / service.build.context / service.build.dockerfile).is_file()
    assert used == COMPOSE.volumes.keys()


def test_every_variable_of_compose_stands_in_the_example_and_no_secret_has_a_value() -> None:
    example = (DEPLOY / "compose.env.example").read_text()
    given = dict(line.split("=", 1) for line in example.splitlines() if not line.startswith("#"))
    assert set(re.findall(r"\$\{([A-Z0-9_]+)", TEXT)) == given.keys()
    secret = {name: value for name, value in given.items() if name not in ("HUB_DATASET", "SESSIONS")}
    assert set(secret.values()) == {""}
    ignored = subprocess.run(
        ["git", "check-ignore", "deploy/.env", "deploy/config/run.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(ignored.stdout.splitlines()) == 2


def test_a_key_that_compose_does_not_know_is_refused() -> None:
    wrong = yaml.safe_load(TEXT)
    wrong["services"]["worker"]["comand"] = []
    with pytest.raises(ValidationError, match="comand"):
        _Compose.model_validate(wrong)


@pytest.mark.parametrize("name", ["prefect-server", "worker"])
def test_prefect_knows_the_options_of_a_service(name: str) -> None:
    command = COMPOSE.services[name].command or []
    words = [part for part in command[1:3] if not part.startswith("-")]
    assert command[0] == "prefect"
    done = subprocess.run(
        [str(BIN / "prefect"), *words, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    options = [part for part in command if part.startswith("--")]
    assert options
    assert [option for option in options if option not in done.stdout] == []


# ---------------------------------------------------------------- image


def test_the_image_is_made_of_what_the_checkout_has() -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "ARG", "ENV", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "CMD"}
    assert {word for word, _ in lines} <= known
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = re.findall(r"^FROM python:([\d.]+)-", text, re.MULTILINE)
    assert set(python) == {project["requires-python"].removeprefix(">=")}
    [extras] = re.findall(r"^ARG EXTRAS=(\S+)", text, re.MULTILINE)
    shown = re.findall(r"EXTRAS=(\S+)", text)
    assert {extra for each in shown for extra in each.split(",")} <= project["optional-dependencies"].keys()
    assert extras == "postgres"
    copied = [rest.split()[:-1] for word, rest in lines if word == "COPY" and "--from" not in rest]
    assert [(ROOT / path).exists() for paths in copied for path in paths] == [True, True]
    assert (DEPLOY / "Dockerfile.dockerignore").is_file()
    assert json.loads(dict(lines)["CMD"]) == ["tracemill", "--help"]


# ---------------------------------------------------------------- Kubernetes


def test_the_job_template_is_one_that_prefect_takes() -> None:
    template = json.loads((DEPLOY / "kubernetes" / "job-template.json").read_text())
    pool = WorkPoolCreate(name="gpu", type="kubernetes", base_job_template=template)
    assert pool.base_job_template == template
    manifest = template["job_configuration"]["job_manifest"]
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "Job")
    pod = manifest["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["args"] == "{{ command }}"
    assert {mount["name"] for mount in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    [uid] = re.findall(r"--uid (\d+)", (DEPLOY / "Dockerfile").read_text())
    assert pod["securityContext"]["runAsUser"] == int(uid)
    used = set(re.findall(r"\{\{ (\w+) \}\}", json.dumps(template["job_configuration"])))
    assert used == template["variables"]["properties"].keys()
    del template["variables"]["properties"]["gpus"]
    with pytest.raises(ValidationError, match="gpus"):
        WorkPoolCreate(name="gpu", type="kubernetes", base_job_template=template)


# ---------------------------------------------------------------- systemd and command lines


def command_of(unit: Path) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = lambda optionstr: optionstr
    parser.read(unit)
    return shlex.split(parser["Service"]["ExecStart"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_units(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/tracemill/bin/", f"{BIN}/"))
    command = ["systemd-analyze", "verify", "--man=no", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    copy.write_text(copy.read_text().replace("Restart=on-failure", "Restart=sometimes"))
    broken = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "sometimes" in broken.stderr


def parsed(command: list[str]) -> dict[str, Any]:
    """The values of a command line of tracemill, read as the command line reads them."""
    group: Any = get_command(app)
    name, *rest = command[1:]
    with group.commands[name].make_context(name, rest) as context:
        return context.params


def test_the_command_lines_are_those_of_the_programs(tmp_path: Path) -> None:
    [schedule] = [each for each in map(command_of, UNITS) if each[0].endswith("/tracemill")]
    found = parsed(schedule)
    assert (str(found["config"]), found["cron"]) == ("/etc/tracemill/run.toml", "0 3 * * *")
    receivers = [each for each in map(command_of, UNITS) if each[1].endswith("hub_webhook.py")]
    receivers.append(COMPOSE.services["webhook"].command or [])
    assert len(receivers) == 2
    env = {name: value for name, value in os.environ.items() if name != "TRACEMILL_WEBHOOK_SECRET"}
    for command in receivers:
        assert command[1] == "/opt/tracemill/hub_webhook.py"
        options = [part.replace("${HUB_DATASET:?}", "owner/name") for part in command[2:]]
        script = [sys.executable, str(DEPLOY / "hub_webhook.py"), *options]
        done = subprocess.run(script, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stderr.startswith("hub_webhook: TRACEMILL_WEBHOOK_SECRET is not set")
