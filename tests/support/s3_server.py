"""An S3 server on loopback for tests: moto in a process of its own, gone afterwards."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "sessions"


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """The environment of a process that uses a server with one empty bucket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    said = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=said, stderr=said, env=dict(os.environ))
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/moto-api/", process)
        urllib.request.urlopen(urllib.request.Request(f"{url}/{BUCKET}", method="PUT"), timeout=30).close()
        yield environment(url)
    finally:
        process.kill()
        process.wait()


def environment(url: str) -> dict[str, str]:
    """What points a process at the server of a URL."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "access",
        "AWS_SECRET_ACCESS_KEY": "loopback",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError("the S3 server did not start")
