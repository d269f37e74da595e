"""Take the picture of the README: a pair of the demo in its report, seen in Chromium.

    python scripts/readme_pictures.py

Wants the extra dev and `chromium`, and takes a minute. Look at the picture before it is committed.
"""

import base64
import io
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from prefect_pictures import COLOURS, PICTURES, SETTLE_S, Browser, browser

ROOT = Path(__file__).resolve().parent.parent
PAIR = "claude_code-3ab60806198d22416591:0:3"
"""The step of the pair: two edits, one each for the two places of a line, over one that cannot be placed."""
SHOWN = "article.pair"
"""Selector of a pair on the page; the search field narrows the pairs to those of the step."""
WIDTH, MARGIN = 1060, 12


def take(page: Browser, report: Path, name: str) -> None:
    """Write a picture of the teachers' pair at the step, in the light colours of the page."""
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    size = {"width": WIDTH, "height": 1200, "deviceScaleFactor": 2, "mobile": False}
    page.call("Emulation.setDeviceMetricsOverride", **size)
    page.call("Page.navigate", url=report.as_uri())
    page.wait(f"document.querySelector({json.dumps(SHOWN)}) !== null")
    page.evaluate(
        "(() => { const field = document.querySelector('input[type=search]');"
        f" field.value = {json.dumps(PAIR)}; field.dispatchEvent(new Event('input')); }})()"
    )
    time.sleep(SETTLE_S)
    where = page.evaluate(
        f"(() => {{ const shown = [...document.querySelectorAll({json.dumps(SHOWN)})];"
        " const pair = shown.find(each => each.innerText.includes('careful')) || shown[0];"
        " const at = pair.getBoundingClientRect();"
        " return [at.x + scrollX, at.y + scrollY, at.width, at.height]; })()"
    )
    x, y, width, height = where
    clip = {"x": x - MARGIN, "y": y - MARGIN, "width": width + 2 * MARGIN, "height": height + 2 * MARGIN}
    taken = page.call(
        "Page.captureScreenshot", format="png", clip=clip | {"scale": 1}, captureBeyondViewport=True
    )
    shown = Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")
    small = shown.quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(PICTURES / f"{name}.png", optimize=True)


def main() -> None:
    """Run the demo in a folder of its own and take the picture."""
    program = Path(sys.executable).with_name("tracemill")
    with TemporaryDirectory() as place:
        flags = ["--workspace", place + "/w", "--quiet"]
        command = [program, "run", ROOT / "configs" / "demo.toml", *flags]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        with browser() as page:
            take(page, Path(done.stdout.strip()) / "report.html", "pair")


if __name__ == "__main__":
    main()
