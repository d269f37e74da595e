"""The wheel: the same from the checkout and from the sdist, one name in site-packages, and it works alone."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from prefect_database import prefect_home

ROOT = Path(__file__).resolve().parent.parent
KEY = "6b" * 32
RUN = (
    "workspace = 'w'\npreset = 'simulated'\n[sources]\npaths = ['sessions']\n[budget]\nmax_total_usd = 1.0\n"
)

pytestmark = pytest.mark.slow


def build(folder: Path, out: Path, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    for target in targets:
        command += ["-t", target]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def files_of(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel of the checkout, and the one that is built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder / "checkout", "sdist", "wheel")
    [sdist] = (folder / "checkout").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    [source] = (folder / "source").iterdir()
    build(source, folder / "sdist", "wheel")
    [ours], [theirs] = (folder / "checkout").glob("*.whl"), (folder / "sdist").glob("*.whl")
    return ours, theirs


@pytest.fixture(scope="module")
def installed(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel and the dependencies, and without the checkout."""
    home = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", str(wheels[0])]
    subprocess.run(pip, check=True, capture_output=True)
    [site] = home.glob("lib/*/site-packages")
    # folders named in a .pth file are searched; their own .pth files, which name the checkout, are not read
    dependencies = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "dependencies.pth").write_text("\n".join(dependencies) + "\n")
    return home / "bin"


def test_both_ways_give_one_wheel_and_it_holds_the_whole_tree(wheels: tuple[Path, Path]) -> None:
    ours, theirs = map(files_of, wheels)
    assert ours == theirs
    assert {name.partition("/")[0].partition("-")[0] for name in ours} == {"tracemill"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    links = {path.name for path in (ROOT / "tracemill").iterdir() if path.is_symlink()}
    wanted = {f"tracemill/{name}" for name in tracked.stdout.split("\n") if name.partition("/")[0] in links}
    assert len(wanted) > 500
    assert wanted - set(ours) == set()


def checked(folder: Path, *tag: str) -> subprocess.CompletedProcess[str]:
    """What the release workflow checks of a wheel and an sdist."""
    command = [sys.executable, str(ROOT / "scripts" / "check_dist.py"), str(folder), *tag]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_check_of_a_release_takes_them_and_refuses_what_is_wrong(
    wheels: tuple[Path, Path], tmp_path: Path
) -> None:
    good = wheels[0].parent
    version = wheels[0].name.split("-")[1]
    done = checked(good, f"v{version}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"tracemill {version}: wheel and sdist are as they should be\n"
    assert checked(good, "v9.9").stderr == (
        f"check_dist: the tag is v9.9; expected v{version}, the version of the source\n"
    )
    assert "0 wheels and 0 sdists; expected one of each" in checked(tmp_path).stderr

    def spoilt(change: Callable[[str, bytes], bytes | None]) -> str:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        shutil.copy(next(good.glob("*.tar.gz")), folder)
        with zipfile.ZipFile(wheels[0]) as old, zipfile.ZipFile(folder / wheels[0].name, "w") as new:
            for name in old.namelist():
                if (data := change(name, old.read(name))) is not None:
                    new.writestr(name, data)
        done = checked(folder)
        assert done.returncode == 1
        return done.stderr

    typed = "tracemill/py.typed"
    assert f"lacks {typed}" in spoilt(lambda name, data: None if name == typed else data)
    meta = ".dist-info/METADATA"
    text = f"Version: {version}".encode()
    other = spoilt(lambda name, data: data.replace(text, b"Version: 0.0.1") if meta in name else data)
    assert "is of version 0.0.1" in other
    broken = spoilt(lambda name, data: data.replace(text, b"Version: one") if meta in name else data)
    assert "'one' is invalid for 'version'" in broken


def test_nothing_but_tracemill_comes_into_site_packages(installed: Path) -> None:
    [site] = installed.parent.glob("lib/*/site-packages")
    [record] = site.glob("tracemill-*.dist-info/RECORD")
    tops = {line.partition("/")[0] for line in record.read_text().splitlines()}
    assert {top.partition("-")[0] for top in tops} == {"tracemill", ".."}
    code = "import tracemill; print(tracemill.__file__)"
    where = run([str(installed / "python"), "-c", code], {}, Path("/"))
    assert Path(where.strip()) == site / "tracemill" / "__init__.py"
    said = run([str(installed / "tracemill"), "--version"], {}, Path("/"))
    assert said == f"tracemill {record.parent.name.split('-')[1].removesuffix('.dist')}\n"


def run(command: list[str], env: Mapping[str, str], cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=dict(os.environ) | env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def released(script: Path, folder: Path) -> list[dict[str, Any]]:
    """The rows of a run over the example sessions, in a workspace of a known key."""
    import pyarrow.parquet as pq

    shutil.copytree(ROOT / "examples" / "sessions", folder / "sessions")
    (folder / "run.toml").write_text(RUN)
    (folder / "w").mkdir()
    (folder / "w" / "workspace.json").write_text('{"layout": 1, "text": "redacted"}')
    (folder / "w" / "redaction.key").write_text(KEY)
    env = {"PREFECT_HOME": str(prefect_home(folder / "prefect"))}
    record = json.loads(run([str(script), "run", "run.toml", "--json"], env, folder))
    tables = sorted(Path(record["release"]["path"]).glob("data/dpo/*.parquet"))
    return [row for table in tables for row in pq.read_table(table).to_pylist()]


@pytest.mark.long
def test_the_wheel_releases_the_rows_that_the_checkout_releases(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "wheel").mkdir()
    (tmp_path / "checkout").mkdir()
    theirs = released(installed / "tracemill", tmp_path / "wheel")
    ours = released(Path(sys.executable).parent / "tracemill", tmp_path / "checkout")
    assert len(theirs) > 30
    assert theirs == ours
