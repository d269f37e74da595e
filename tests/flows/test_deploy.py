"""`tracemill deploy`: the file it writes, what it makes at a real server, and what it refuses."""

import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import httpx
import pytest
import yaml
from console_says import Call

from tracemill.flows.deployment.apply_plan import HEAD

SOURCES = "[sources]\npaths = ['sessions']\n"
TRAINING = "[training]\nmodel = 'org/model'\n"
CRON = ("--cron", "0 3 * * *")


def config_of(folder: Path, more: str = "") -> Path:
    path = folder / "run.toml"
    path.write_text(f"workspace = 'w'\n{SOURCES}{more}")
    return path


def written(folder: Path) -> dict[str, dict[str, Any]]:
    text = (folder / "prefect.yaml").read_text()
    return {each["name"]: each for each in yaml.safe_load(text)["deployments"]}


def refusal(done: CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    return done.stderr


def test_the_file_has_schedule_triggers_and_parameters_and_no_secret(console: Call, tmp_path: Path) -> None:
    config = config_of(tmp_path, f"[release]\nhub = 'owner/data'\n{TRAINING}")
    file = tmp_path / "prefect.yaml"
    more = ("--timezone", "Europe/Berlin", "--suffix", "shop", "--file", file, "--write-only")
    assert console("deploy", config, *CRON, *more, HF_TOKEN="hf_secret").stdout == f"wrote {file}\n"
    made = written(tmp_path)
    assert list(made) == ["nightly-harvest-shop", "release-shop", "train-from-release-shop"]
    harvest, release, training = made.values()
    assert harvest["schedules"] == [{"cron": "0 3 * * *", "timezone": "Europe/Berlin", "active": True}]
    assert harvest["parameters"] == {"config": str(config), "workspace": str(tmp_path / "w")}
    assert [each["work_pool"]["name"] for each in made.values()] == ["tracemill"] * 2 + ["tracemill-train"]
    [after] = release["triggers"]
    assert after["match_related"]["prefect.resource.name"] == "nightly-harvest-shop"
    assert after["expect"] == ["tracemill.harvest.finished"]
    [on_release] = training["triggers"]
    assert on_release["match"] == {"prefect.resource.id": "tracemill.release.owner/data"}
    assert on_release["expect"] == ["tracemill.release.published"]
    assert "hf_secret" not in file.read_text()


def test_without_hub_a_training_follows_what_is_written_here(console: Call, tmp_path: Path) -> None:
    flags = (*CRON, "--file", tmp_path / "prefect.yaml", "--write-only")
    assert console("deploy", config_of(tmp_path), *flags).returncode == 0
    assert list(written(tmp_path)) == ["nightly-harvest", "release"]
    assert console("deploy", config_of(tmp_path, TRAINING), *flags).returncode == 0
    [trigger] = written(tmp_path)["train-from-release"]["triggers"]
    assert trigger["expect"] == ["tracemill.release.created"]
    assert trigger["match"] == {"prefect.resource.id": "tracemill.release.traces"}


def test_bad_input_is_one_line_and_writes_nothing(console: Call, tmp_path: Path) -> None:
    config, file = config_of(tmp_path), tmp_path / "prefect.yaml"
    said = refusal(console("deploy", config, "--cron", "0 3 * *", "--file", file))
    assert "--cron '0 3 * *' is not valid; expected five fields" in said
    said = refusal(console("deploy", config, *CRON, "--timezone", "Mars/Olympus", "--file", file))
    assert "--timezone 'Mars/Olympus' is unknown" in said
    assert not file.exists()
    file.write_text("deployments: []\n")
    assert "was not written by tracemill; give another --file" in refusal(
        console("deploy", config, *CRON, "--file", file)
    )
    assert file.read_text() == "deployments: []\n"


@pytest.mark.slow
@pytest.mark.long
def test_a_server_gets_pools_with_limits_deployments_and_automations(
    prefect_server: dict[str, str], tmp_path: Path
) -> None:
    config, file = config_of(tmp_path, TRAINING), tmp_path / "prefect.yaml"
    url = prefect_server["PREFECT_API_URL"]

    def deploy(*more: object, **env: str) -> CompletedProcess[str]:
        script = str(Path(sys.executable).parent / "tracemill")
        command = [script, "deploy", *map(str, (config, *CRON, "--file", file, *more))]
        env = dict(os.environ) | prefect_server | env
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False)

    for _ in range(2):
        done = deploy()
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"wrote {file}",
        "deployed nightly-harvest to pool tracemill",
        "deployed release to pool tracemill",
        "deployed train-from-release to pool tracemill-train",
        *(
            f"pool {name} has no worker; start one: prefect worker start --pool {name}"
            for name in ("tracemill", "tracemill-train")
        ),
    ]
    assert file.read_text().startswith(HEAD)
    pools = {each["name"]: each for each in httpx.post(f"{url}/work_pools/filter", json={}).json()}
    limits = {name: (pools[name]["type"], pools[name]["concurrency_limit"]) for name in pools}
    assert limits == {"tracemill": ("process", 2), "tracemill-train": ("process", 1)}
    there = httpx.post(f"{url}/deployments/filter", json={}).json()
    assert sorted(each["name"] for each in there) == ["nightly-harvest", "release", "train-from-release"]
    automations = httpx.post(f"{url}/automations/filter", json={}).json()
    assert sorted(each["name"] for each in automations) == [
        "nightly-harvest: close dead runs",
        "nightly-harvest: resume after a crash",
        "release: after each harvest",
        "release: resume after a crash",
        "train-from-release: on each release",
        "train-from-release: resume after a crash",
    ]

    other = tmp_path / "other.toml"
    config = config.rename(other)
    assert f"belongs to {tmp_path / 'run.toml'}; give --suffix" in refusal(deploy())
    assert "work pool tracemill is of type process; expected docker" in refusal(
        deploy("--suffix", "b", "--pool-type", "docker")
    )
    nobody = "http://127.0.0.1:9/api"
    unwritten = tmp_path / "unwritten.yaml"
    said = refusal(deploy("--suffix", "b", "--file", unwritten, PREFECT_API_URL=nobody))
    assert f"the Prefect server at {nobody}/ does not answer" in said
    assert not unwritten.exists()
