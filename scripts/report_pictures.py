"""Take the pictures of a report: `docs/pictures/report.png`, and `pair.png`, one pair of it.

    python scripts/report_pictures.py [--workspace FOLDER] [--pair ID]

The release is the newest of `make demo`, and the pair, where none is named, the first whose sides are both
edits. Wants Chromium. Look at each picture before it is committed.
"""

import argparse
import io
import json
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from chromium_page import ChromiumPage, chromium_page  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT, TALL, COLOURS = 1280, 1000, 4000, 200
READY = "document.documentElement && document.documentElement.dataset.whole !== undefined"
EDITS = """(() => {
  for (const key of ["did", "chose"]) {
    const field = document.getElementById(`by-${key}`);
    field.value = "edit";
    field.dispatchEvent(new Event("change"));
  }
  return document.querySelector("#pair .facts a")?.getAttribute("href") ?? "";
})()"""
# From the title of the pair to the last line on its votes.
PLACE = """(() => {
  const box = document.getElementById("pair").getBoundingClientRect();
  const end = document.querySelector("#pair .context").getBoundingClientRect();
  const [x, y] = [box.left + scrollX - 16, box.top + scrollY - 8];
  return { x, y, width: box.width + 32, height: end.top - box.top };
})()"""


def save(data: bytes, path: Path) -> None:
    """Write a picture with few colours."""
    shown = Image.open(io.BytesIO(data)).convert("RGB")
    shown.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def take(page: ChromiumPage, url: str, pair: str, folder: Path) -> None:
    """Write both pictures of a report."""
    page.open(url, WIDTH, HEIGHT)
    page.wait(READY)
    link = f"#pair-{pair}" if pair else page.evaluate(EDITS)
    page.open(f"{url}{link}", WIDTH, HEIGHT)
    page.wait(READY)
    page.evaluate("scrollTo(0, 0)")
    save(page.picture(), folder / "report.png")
    page.open(f"{url}{link}", WIDTH, TALL)
    page.wait(READY)
    page.evaluate("scrollTo(0, 0)")
    place: dict[str, float] = page.evaluate(PLACE)
    save(page.picture(**place), folder / "pair.png")


def main() -> None:
    """Take the pictures of the newest release of a workspace."""
    parser = argparse.ArgumentParser(description="Take the pictures of a report.")
    parser.add_argument("--workspace", type=Path, default=ROOT / "demo-workspace")
    parser.add_argument("--pair", default="", help="id of a pair")
    parser.add_argument("--folder", type=Path, default=PICTURES)
    options = parser.parse_args()
    pages = sorted(options.workspace.resolve().glob("releases/*/20*/report.html"))
    if not pages:
        sys.exit(f"{options.workspace} holds no report; expected a release; run `make demo`")
    with chromium_page() as page:
        take(page, pages[-1].as_uri(), options.pair, options.folder)
        if page.errors:
            sys.exit(f"the page said: {json.dumps(page.errors)}")


if __name__ == "__main__":
    main()
