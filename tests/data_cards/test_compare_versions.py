"""Labels of two versions: which came, went and changed, whichever config holds them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.data_cards.model.compare_versions import RowChanges, compare_labels, compare_pairs
from tracemill.records.errors import ReleaseError


def row(step: int, source: str = "agreed", said: str = "I test.", **more: Any) -> dict[str, Any]:
    figures = {"weight": 1.0, "outcome_weight": None, "prompt": "fix it", "tools": "[]"}
    return {"step_id": f"a:0:{step}", "label_source": source, "completion": said, **figures, **more}


def write(folder: Path, **configs: list[dict[str, Any]]) -> Path:
    for config, rows in configs.items():
        path = folder / "data" / config / "train-00000-of-00001.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), path)
    return folder


def test_labels_are_compared_by_step_and_source_and_weights_are_no_change(tmp_path: Path) -> None:
    pair_side = row(9, "hindsight")
    before = write(
        tmp_path / "before",
        sft=[row(0), row(1), row(1, "solved"), row(2), pair_side],
        agreed=[row(0), row(1)],
    )
    after = write(
        tmp_path / "after", agreed=[row(0, weight=0.5, outcome_weight=0.5), row(1, said="I edit."), row(3)]
    )
    moved = compare_labels(before, after)
    assert moved == RowChanges(("a:0:3 agreed",), ("a:0:1 solved", "a:0:2 agreed"), ("a:0:1 agreed",))
    assert compare_pairs(before, after) == RowChanges((), (), ())


def test_another_state_is_a_change_of_the_whole_row_alone(tmp_path: Path) -> None:
    before = write(tmp_path / "before", agreed=[row(0)])
    after = write(tmp_path / "after", agreed=[row(0, prompt="mend it")])
    assert compare_labels(before, after).changed == ("a:0:0 agreed",)
    assert compare_labels(before, after, whole=False) == RowChanges((), (), ())


def test_a_folder_without_tables_and_a_broken_table_are_one_line(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", agreed=[row(0)])
    (tmp_path / "none").mkdir()
    with pytest.raises(ReleaseError, match=r"none holds no table; expected a release made by tracemill"):
        compare_labels(tmp_path / "none", whole)
    next(whole.glob("data/*/*.parquet")).write_bytes(b"PAR1 no more")
    with pytest.raises(ReleaseError, match=r"cannot be read .*; expected a table of a release"):
        compare_labels(whole, whole)
