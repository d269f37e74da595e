"""Faults planted in a feature: where they lie, and what they change."""

import ast
import random
from pathlib import Path

from tracemill.environments.feature_deletion.plant_faults import difference, plant_faults

SOURCE = '''
class Bill:
    def total(self, fee=3):
        """Add 1 and 2."""
        if self.free:
            raise ValueError("none at 5")
        return round(self.net + fee, 2)

    def other(self):
        return 7

    def add(self, line):
        self.lines.append(line)
        self.net += line.net


def outer():
    def total():
        return 9
    return total
'''


def changed_lines(code: Path, symbols: list[str], untested: list[str], most: int) -> list[str]:
    """Give each fault as the lines that it changes."""
    before = ast.unparse(ast.parse((code / "bill.py").read_text())).splitlines()
    found = []
    for file, text in plant_faults(code, symbols, untested, random.Random(0), most):
        assert file == "bill.py"
        after = text.splitlines()
        assert len(after) == len(before)
        found += [new.strip() for old, new in zip(before, after, strict=True) if old != new]
    return sorted(found)


def test_a_fault_lies_in_the_body_of_a_deleted_function_and_is_alone(tmp_path: Path) -> None:
    (tmp_path / "bill.py").write_text(SOURCE)
    assert changed_lines(tmp_path, ["bill.py::Bill.total"], [], 20) == [
        "if not self.free:",
        "return round(2, self.net + fee)",
        "return round(self.net + fee, 3)",
        "return round(self.net - fee, 2)",
    ]
    assert changed_lines(tmp_path, ["bill.py::Bill.total"], ["bill.py:7"], 20) == ["if not self.free:"]
    assert changed_lines(tmp_path, ["bill.py::Bill.other"], [], 20) == ["return 8"]
    assert changed_lines(tmp_path, ["bill.py::Bill.add"], [], 20) == ["None", "self.net -= line.net"]
    assert len(changed_lines(tmp_path, ["bill.py::Bill.total", "bill.py::Bill.other"], [], 3)) == 3


def test_a_function_without_a_place_has_no_fault(tmp_path: Path) -> None:
    (tmp_path / "bill.py").write_text('def one(x):\n    """One."""\n    return x\n')
    assert changed_lines(tmp_path, ["bill.py::one"], [], 8) == []


def test_a_fault_is_told_by_the_line_that_it_changes() -> None:
    original = "def f(a, b):\n    if a <= b :  # at most\n        return g(a, b)\n"
    faulty = "def f(a, b):\n    if a < b:\n        return g(a, b)"
    assert difference(original, faulty) == "`if a < b:` in place of `if a <= b:`"


def test_equal_arguments_and_those_whose_order_says_nothing_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "bill.py").write_text(
        "def most(a, b):\n    return min(a, b)\n\n\ndef twice(a):\n    return pow(a, a)\n\n\n"
        "def power(a, b):\n    return pow(a, b)\n"
    )
    faults = {
        name: [*plant_faults(tmp_path, [f"bill.py::{name}"], [], random.Random(0), 9)]
        for name in ("most", "twice", "power")
    }
    assert {name: len(found) for name, found in faults.items()} == {"most": 0, "twice": 0, "power": 1}
    assert "pow(b, a)" in faults["power"][0][1]
