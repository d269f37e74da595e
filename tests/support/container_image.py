"""An image for container engines made of programs of this machine, where no registry can be reached.

Its Python lies in another folder than this interpreter, as it does in images of others.
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PREFIX = "/opt/image"
_PROGRAMS = ("bash", "cat", "env", "grep", "head", "id", "ls", "mount", "rm", "sh", "sleep", "truncate")
_LEFT_OUT = {"site-packages", "test", "idlelib", "ensurepip", "lib2to3", "__pycache__", "tkinter"}


def engine_that_works(name: str) -> str:
    """Return why an engine cannot run containers here; empty where it can be tried."""
    if shutil.which(name) is None:
        return f"{name} is not installed"
    asked = subprocess.run([name, "info"], capture_output=True, text=True, timeout=60, check=False)
    return f"{name} does not answer: {asked.stderr.strip()[:200]}" if asked.returncode else ""


@contextmanager
def image_of_this_machine(engine: str, scratch: Path, testbed: Path | None = None) -> Iterator[str]:
    """Import a root file system with Python and a few programs as an image; it is removed afterwards.

    A folder may be in it as `/testbed`.
    """
    tag = f"localhost/tracemill-test:{uuid.uuid4().hex[:8]}"
    archive = scratch / "root.tar"
    _write_root(archive)
    if testbed is not None:
        with tarfile.open(archive, "a") as tar:
            tar.add(testbed, arcname="testbed")
    change = f"ENV PATH={PREFIX}/bin:/usr/bin:/bin"
    made = subprocess.run(
        [engine, "import", "--change", change, str(archive), tag], capture_output=True, text=True, check=False
    )
    archive.unlink()
    if made.returncode:
        raise AssertionError(f"{engine} import: {made.stderr.strip()}")
    try:
        yield tag
    finally:
        subprocess.run([engine, "rmi", "--force", tag], capture_output=True, check=False)


def _write_root(archive: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefix = Path(sys.base_prefix).resolve()
    interpreter, library = prefix / "bin" / version, prefix / "lib" / version
    programs = [Path(found) for name in _PROGRAMS if (found := shutil.which(name, path="/usr/bin:/bin"))]
    shared = _libraries([interpreter, *programs, *library.rglob("lib-dynload/*.so")])
    folders = {parent for path in shared for parent in path.parents} | {Path("/tmp"), Path("/proc")}
    with tarfile.open(archive, "w", dereference=True) as tar:
        for folder in sorted(folders - {Path("/")}):
            entry = tarfile.TarInfo(str(folder).lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == Path("/tmp") else 0o755
            tar.addfile(entry)
        for path in sorted(shared):
            tar.add(path.resolve(), arcname=str(path))
        for path in programs:
            tar.add(path.resolve(), arcname=f"/bin/{path.name}")
        for name in ("python3", version):
            tar.add(interpreter.resolve(), arcname=f"{PREFIX}/bin/{name}")
        tar.add(library, arcname=f"{PREFIX}/lib/{version}", filter=_kept)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = set(Path(entry.name).parts)
    if parts & _LEFT_OUT or entry.name.endswith(".a"):
        return None
    entry.mode |= 0o444
    return entry


def _libraries(programs: list[Path]) -> set[Path]:
    """Return the shared libraries of programs, the loader included, by the path they look for them."""
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in re.findall(r"\s(/\S+\.so\S*)(?= \(0x)", said)}


def state_of(engine: str) -> list[str]:
    """Return the names of all containers of tracemill that an engine knows, running or not."""
    asked = [engine, "ps", "--all", "--format", "json"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    names = [each["Names"] for each in json.loads(said)]
    flat = [name for each in names for name in (each if isinstance(each, list) else [each])]
    return [name for name in flat if name.startswith("tracemill-")]


def choose_runtime(engine: str, image: str, scratch: Path, patch: pytest.MonkeyPatch) -> str:
    """Let podman use the first OCI runtime that starts a container; return why none does, empty else."""
    options = ["--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
    said = ""
    for runtime in ("", "crun", "runc") if engine == "podman" else ("",):
        if runtime:
            settings = scratch / f"{runtime}.conf"
            settings.write_text(f'[engine]\nruntime = "{runtime}"\n')
            patch.setenv("CONTAINERS_CONF", str(settings))
        tried = subprocess.run(
            [engine, "run", *options, image, "python3", "-c", ""], capture_output=True, text=True, check=False
        )
        if tried.returncode == 0:
            return ""
        said = tried.stderr.strip()[:200]
    return said
