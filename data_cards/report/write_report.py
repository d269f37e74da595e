"""Write the report of a release: `report.json`, its figures, and `report.html`, a page without requests.

Texts of sessions are in the page as packed JSON, and its script writes them as text. The page forbids
itself every request and every other script (https://www.w3.org/TR/CSP3/).
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
from tracemill.data_cards.report.example_rows import ExampleRows, read_example_rows
from tracemill.data_cards.report.figures import build_figures
from tracemill.data_cards.report.number_format import (
    format_number,
    format_share,
    format_short_number,
    format_usd,
)
from tracemill.records.errors import ReleaseError
from tracemill.records.label_source import source_title
from tracemill.records.packed_json import PACKED_JSON_TYPE
from tracemill.records.plain_words import reason_in_words
from tracemill.records.storage.atomic_files import write_atomically

_HERE = Path(__file__).parent


def write_report(folder: Path, manifest: Manifest, run: RunFigures | None) -> ReportFigures:
    """Write figures and page of the release in `folder`, and return the figures.

    Raises ReleaseError if the template uses an undefined name.
    """
    figures = build_figures(folder, manifest, run)
    with write_atomically(folder / REPORT_JSON) as temporary:
        temporary.write_text(figures.model_dump_json(indent=2) + "\n", encoding="utf-8")
    audit = read_audit(folder, manifest.content_fingerprint)
    page = render_page(figures, read_example_rows(folder, manifest), audit and audit.precision(manifest.rows))
    with write_atomically(folder / REPORT_PAGE) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return figures


def write_report_from_folder(folder: Path) -> ReportFigures:
    """Write the report of a finished release again, from the release alone.

    Raises ReleaseError if it is no release of this version, or a file of it is missing or was changed.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    figures = read_figures(folder)
    return write_report(folder, manifest, figures.run if figures else None)


def render_page(figures: ReportFigures, examples: ExampleRows, precision: Precision | None = None) -> str:
    """Render the page."""
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
        titled=source_title,
        reason=reason_in_words,
    )
    script = (_HERE / "report.js").read_text(encoding="utf-8")
    try:
        return environment.get_template("report.html.jinja").render(
            f=figures,
            c=build_charts(figures),
            precision=precision,
            browsed=examples,
            titles={name: source_title(name) for name in figures.funnel[-1].parts},
            packed=examples.packed,
            data_type=PACKED_JSON_TYPE,
            style=(_HERE / "report.css").read_text(encoding="utf-8"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    except jinja2.TemplateError as error:
        raise ReleaseError(f"the report cannot be rendered ({error})") from error


def report_name_markup(name: str) -> Markup:
    """Return a name that may wrap after slashes and underscores and before brackets."""
    markup = escape(name)
    for sign, replacement in (("/", "/<wbr>"), ("(", "<wbr>("), ("_", "_<wbr>")):
        markup = markup.replace(sign, Markup(replacement))
    return markup


def report_code_markup(text: str) -> Markup:
    """Return escaped text, with the text between backticks as code."""
    texts = [escape(each) for each in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(p) if at % 2 else p for at, p in enumerate(texts))
