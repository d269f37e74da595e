"""Write the report of a finished release again."""

import json
import sys
from pathlib import Path

from tracemill.data_cards.model.find_release import find_release
from tracemill.data_cards.model.report_model import REPORT_PAGE
from tracemill.data_cards.report.write_report import write_report_from_folder
from tracemill.flows.run_state.run_records import releases_beside_run_records


def write_report_again(asked: str | None, root: Path | None, as_json: bool) -> None:
    """Write figures and report page of a finished release again, from the release alone."""
    folder = find_release(asked, releases_beside_run_records(root)).folder
    figures = write_report_from_folder(folder)
    if as_json:
        sys.stdout.write(json.dumps(figures.model_dump(mode="json")) + "\n")
    else:
        sys.stdout.write(f"{folder / REPORT_PAGE}\n")
