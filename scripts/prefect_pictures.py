"""Take the pictures of `docs/prefect_ui.md`: two nights over a real Prefect server, seen in Chromium.

    python scripts/prefect_pictures.py

The nights are those of the tests: a provider and a Hub on loopback, and a tiny model that is trained. They
take five minutes, and want the extras dev and train, and `chromium`. Look at each picture before it is
committed.
"""

import io
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from chromium_page import ChromiumPage, chromium_page  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
WIDTH, MENU = 1280, 256
"""Pixels of a page, and of the menu at its left, which pictures leave out."""
SETTLE_S, COLOURS = 3.0, 160


@dataclass(frozen=True)
class Picture:
    """A part of a page: its name and path, a text that says that it is there, and which lines of pixels."""

    name: str
    path: str
    text: str
    bottom: int
    top: int = 0
    tab: str = ""


def take(page: ChromiumPage, origin: str, picture: Picture) -> None:
    """Write a picture of a page that shows the text of it."""
    page.open(origin + picture.path, WIDTH, max(picture.bottom, 800))
    page.wait(f"document.body.innerText.includes({json.dumps(picture.text)})")
    if picture.tab:
        named = f"each => each.innerText.trim() == {json.dumps(picture.tab)}"
        page.evaluate(f"void [...document.querySelectorAll('a, button, li')].find({named}).click()")
    time.sleep(SETTLE_S)
    height = picture.bottom - picture.top
    taken = page.picture(x=MENU, y=picture.top, width=WIDTH - MENU, height=height)
    shown = Image.open(io.BytesIO(taken)).convert("RGB")
    small = shown.quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(PICTURES / f"{picture.name}.png", optimize=True)


def artifact_of(house: Any, run: dict[str, Any], key: str) -> str:
    """Return the path of the page of an artifact of a run."""
    [found] = [each["id"] for each in house.artifacts(key) if each["flow_run_id"] == run["id"]]
    return f"/artifacts/artifact/{found}"


def pictures(house: Any) -> list[Picture]:
    """Return the pictures of the second night of a server."""
    harvest, release = (house.runs(flow)[1] for flow in ("harvest", "release"))
    table = artifact_of(house, harvest, "nights-closing-table")
    report = artifact_of(house, release, "nights-report")
    deployment = f"/deployments/deployment/{harvest['deployment_id']}"
    run = f"/runs/flow-run/{harvest['id']}"
    events = "/events?events=tracemill.*&events=prefect.asset.*"
    return [
        Picture("runs", "/runs", "6 runs", bottom=1370, top=596),
        Picture("harvest", run, "Task Runs", bottom=850, tab="Artifacts"),
        Picture("closing_table", table, "pairs made", bottom=1570),
        Picture("report_artifact", report, "kept pairs", bottom=760),
        Picture("deployment", deployment, "Next Run", bottom=600),
        Picture("automations", "/automations", "Marks a run as crashed", bottom=670),
        Picture("events", events, "Asset materialization succeeded", bottom=1240, top=390),
    ]


def main() -> None:
    """Run two nights and take the pictures."""
    import hub_stub

    hub, _ = hub_stub.serve()
    os.environ |= {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    import night_config
    import pytest
    from prefect_nights import POOL, PrefectHouse

    with (
        TemporaryDirectory() as place,
        pytest.MonkeyPatch.context() as patch,
        night_config.provider(patch, latency_s=0.25) as stub,
    ):
        env = {"TRACEMILL_OPENROUTER_URL": stub.url, "OPENROUTER_API_KEY": night_config.KEY}
        env |= {"HF_TOKEN": hub_stub.TOKEN, "HF_HOME": f"{place}/hf", "PREFECT_SERVER_UI_ENABLED": "true"}
        house = PrefectHouse(Path(place), env | {"PREFECT_UI_STATIC_DIRECTORY": f"{place}/ui"})
        house.env["PREFECT_UI_API_URL"] = house.url
        try:
            house.start_server()
            house.start_worker()
            config = night_config.config_of(house.folder)
            times = ("--cron", "0 3 * * *", "--timezone", "Europe/Berlin")
            house.tracemill("deploy", config, *times, "--training-pool", POOL)
            for number in (1, 2):
                house.start_run("harvest", "nightly-harvest")
                night_config.night_ends(house, hub, number)
                if number == 1:
                    night_config.grow(house.folder)
            PICTURES.mkdir(exist_ok=True)
            with chromium_page() as page:
                for each in pictures(house):
                    take(page, house.url.removesuffix("/api"), each)
        finally:
            for name in list(house.running):
                house.kill(name)


if __name__ == "__main__":
    main()
