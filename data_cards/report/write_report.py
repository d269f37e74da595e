"""The report of a release: `report.json`, its figures, and `report.html`, one page that needs no network.

What the page shows of sessions is data: it stands in the page as JSON, in which no `<` is left, and its
script writes it as text. The page forbids itself every request and every script but its own
(https://www.w3.org/TR/CSP3/).
"""

import base64
import hashlib
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from tracemill.data_cards.model.audit_sample import Precision, read_audit
from tracemill.data_cards.model.manifest import Manifest, check_files, read_manifest
from tracemill.data_cards.model.release_spec import RunFigures
from tracemill.data_cards.model.report_model import REPORT_JSON, REPORT_PAGE, ReportFigures, read_figures
from tracemill.data_cards.report.charts import build_charts
from tracemill.data_cards.report.example_rows import Browsed, embed_example_json, read_example_rows
from tracemill.data_cards.report.figures import build_figures
from tracemill.data_cards.report.number_format import (
    format_number,
    format_share,
    format_short_number,
    format_usd,
)
from tracemill.records.errors import ReleaseError
from tracemill.records.storage.atomic_files import writing

_HERE = Path(__file__).parent


def write_report(folder: Path, manifest: Manifest, run: RunFigures | None) -> ReportFigures:
    """Writes figures and page of the release in `folder`; gives the figures. Raises ReleaseError where the
    template asks for what is not there."""
    figures = build_figures(folder, manifest, run)
    with writing(folder / REPORT_JSON) as temporary:
        temporary.write_text(figures.model_dump_json(indent=2) + "\n", encoding="utf-8")
    audit = read_audit(folder, manifest.content_fingerprint)
    page = render_page(figures, read_example_rows(folder, manifest), audit and audit.precision(manifest.rows))
    with writing(folder / REPORT_PAGE) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return figures


def write_report_from_folder(folder: Path) -> ReportFigures:
    """The report of a finished release written again, from the release alone. Raises ReleaseError where it
    is none of this version, or a table of it is missing or was changed."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    known = read_figures(folder)
    return write_report(folder, manifest, known.run if known else None)


def render_page(figures: ReportFigures, browsed: Browsed, precision: Precision | None = None) -> str:
    """The text of the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        usd=format_usd,
        share=format_share,
        so_many=format_number,
        short=format_short_number,
        soft=report_name_markup,
        ticks=report_code_markup,
    )
    script = (_HERE / "report.js").read_text(encoding="utf-8")
    try:
        return environment.get_template("report.html.jinja").render(
            f=figures,
            c=build_charts(figures),
            precision=precision,
            browsed=browsed,
            data=embed_example_json({"rows": browsed.rows}),
            style=(_HERE / "report.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    except jinja2.TemplateError as error:
        raise ReleaseError(f"the report cannot be rendered ({error})") from error


def report_name_markup(name: str) -> Markup:
    """A name that may break behind its slashes and before its brackets."""
    broken = escape(name)
    for sign, between in (("/", "/<wbr>"), ("(", "<wbr>("), ("_", "_<wbr>")):
        broken = broken.replace(sign, Markup(between))
    return broken


def report_code_markup(text: str) -> Markup:
    """Text with what stands between backticks as code; everything is escaped."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(p) if at % 2 else p for at, p in enumerate(parts))
