"""A page of Chromium without a window, driven through the DevTools protocol."""

import base64
import json
import shutil
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
_FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
_FLAGS += ["--hide-scrollbars", "--remote-debugging-port=0"]
_FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
_LONGEST_S = 60
_ERRORS = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
_KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Escape": 27}


class ChromiumPage:
    """One tab. `errors` holds what its console said."""

    def __init__(self, tab: ClientConnection) -> None:
        self.tab, self.number = tab, 0
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; gives its result."""
        self.number += 1
        self.tab.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while (answer := json.loads(self.tab.recv(timeout=_LONGEST_S))).get("id") != self.number:
            if answer.get("method") in _ERRORS:
                self.errors.append(json.dumps(answer["params"])[:2000])
        return answer["result"]

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + _LONGEST_S
        while not self.evaluate(script):
            assert time.monotonic() < until, script
            time.sleep(0.05)

    def open(self, url: str, width: int, height: int, dark: bool = False) -> None:
        """Load a page anew in a window of so many pixels."""
        size: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"windowsVirtualKeyCode": _KEYS[key]}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, **clip: float) -> bytes:
        """Return a PNG of the window, or of a part of the page."""
        part: dict[str, Any] = {"clip": {**clip, "scale": 1}} if clip else {}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **part)["data"])


@contextmanager
def chromium_page() -> Iterator[ChromiumPage]:
    """Give a page of a fresh Chromium that reaches nothing but loopback."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}"]
        process = Popen(command, stdout=DEVNULL, stderr=DEVNULL)
        try:
            there, until = Path(profile) / "DevToolsActivePort", time.monotonic() + _LONGEST_S
            while not there.exists() or "\n" not in there.read_text():
                assert time.monotonic() < until, "Chromium does not start"
                time.sleep(0.1)
            port = there.read_text().split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as tabs:
                [address] = [t["webSocketDebuggerUrl"] for t in json.load(tabs) if t["type"] == "page"]
            with closing(connect(address, max_size=None)) as tab:
                yield ChromiumPage(tab)
        finally:
            process.terminate()
            process.wait()
