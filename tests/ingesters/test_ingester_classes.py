"""One class of the library for each format, and one for all of them."""

from pathlib import Path

import pytest

import tracemill as tm
from tracemill.ingesters import ingester_classes
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.registry import FORMATS
from tracemill.records.errors import SourceError

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "inputs"
CLASSES = {each.source: each for each in tm.SessionIngester.__subclasses__()}


def test_every_format_has_a_public_class() -> None:
    own = [name for name in FORMATS.names() if (GOLDEN / name).is_dir()]
    assert set(CLASSES) == set(own)
    for each in CLASSES.values():
        assert getattr(tm, each.__name__) is each
        assert each.__module__ == ingester_classes.__name__


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_class_reads_what_a_run_reads(name: str) -> None:
    read = [ingest_source(source) for source in discover([GOLDEN / name])]
    expected = [trace for traces, report in read if report.dialect for trace in traces]
    for ingester in (CLASSES[name](), tm.SessionIngester()):
        assert list(ingester.ingest(GOLDEN / name)) == expected
        assert sum(report.states for report in ingester.reports) == sum(t.step_count for t in expected)
    assert expected


def test_a_class_names_what_is_of_another_format() -> None:
    (source,) = discover([GOLDEN / "pi"])[:1]
    with pytest.raises(SourceError, match=r"is of the format pi; expected a session of codex"):
        list(tm.CodexIngester().ingest(source.path))
    folder = tm.CodexIngester()
    assert list(folder.ingest(source.path.parent)) == []
    assert [report.error is None for report in folder.reports] == [False]
