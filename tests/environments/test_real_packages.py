"""Tasks of packages as they are published: fetched from the index, made, restored, answered wrongly."""

import sys

import orchard
import package_index
import pytest

from benchmarks.real_packages import PACKAGES, TASKS, PackageRow, measure_all, sum_of


@pytest.mark.slow
@pytest.mark.long
def test_tasks_of_real_packages_are_lost_and_restored(capsys: pytest.CaptureFixture[str]) -> None:
    orchard.sandbox()
    package_index.require()
    rows: list[PackageRow] = []
    with capsys.disabled():
        for row in measure_all(PACKAGES, most=TASKS, restorations=10):
            rows.append(row)
            sys.stdout.write(" | ".join(row.cells()) + "\n")
            sys.stdout.flush()
        total = sum_of(rows)
        sys.stdout.write(" | ".join(total.cells()) + "\n")
    assert sum(row.tasks > 0 for row in rows) >= 5
    assert total.tasks >= 60
    assert total.deleted == total.tasks
    assert total.restorations == 10 * total.tasks
    assert total.restored / total.restorations >= 0.988
    assert total.idle == total.tasks
    assert total.faults >= 0.85 * total.tasks
    assert total.faulty == total.faults
