"""Faults planted in a feature: where they lie, and what they change."""

import ast
import random
from pathlib import Path

from tracemill.environments.feature_deletion.plant_faults import plant_faults

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


def changed_lines(code: Path, symbols: list[str], untested: list[str], most: int | None = None) -> list[str]:
    """Give each fault as the lines that it changes."""
    before = ast.unparse(ast.parse((code / "bill.py").read_text())).splitlines()
    found = []
    for fault in plant_faults(code, symbols, untested, random.Random(0), most):
        assert fault.file == "bill.py"
        assert fault.symbol in symbols
        after = fault.text.splitlines()
        assert len(after) == len(before)
        found += [new.strip() for old, new in zip(before, after, strict=True) if old != new]
    return sorted(found)


def test_a_fault_lies_in_the_body_of_a_deleted_function_and_is_alone(tmp_path: Path) -> None:
    (tmp_path / "bill.py").write_text(SOURCE)
    assert changed_lines(tmp_path, ["bill.py::Bill.total"], []) == [
        "if not self.free:",
        "return round(2, self.net + fee)",
        "return round(self.net + fee, 3)",
        "return round(self.net - fee, 2)",
    ]
    assert changed_lines(tmp_path, ["bill.py::Bill.total"], ["bill.py:7"]) == ["if not self.free:"]
    assert changed_lines(tmp_path, ["bill.py::Bill.other"], []) == ["return 8"]
    assert changed_lines(tmp_path, ["bill.py::Bill.add"], []) == ["None", "self.net -= line.net"]
    assert len(changed_lines(tmp_path, ["bill.py::Bill.total", "bill.py::Bill.other"], [], 3)) == 3


def test_a_function_without_a_place_has_no_fault(tmp_path: Path) -> None:
    (tmp_path / "bill.py").write_text('def one(x):\n    """One."""\n    return x\n')
    assert changed_lines(tmp_path, ["bill.py::one"], []) == []


def test_a_fault_is_told_by_its_function_and_the_line_that_it_changes(tmp_path: Path) -> None:
    (tmp_path / "bill.py").write_text(
        "def f(a, b):\n    if a <= b :  # at most\n        return 1\n\n\ndef g(a):\n    return a + 2\n"
    )
    faults = plant_faults(tmp_path, ["bill.py::f", "bill.py::g"], [], random.Random(0))
    assert sorted((fault.symbol, fault.change) for fault in faults) == [
        ("bill.py::f", "`if a > b:` in place of `if a <= b:`"),
        ("bill.py::f", "`if not a <= b:` in place of `if a <= b:`"),
        ("bill.py::f", "`return 2` in place of `return 1`"),
        ("bill.py::g", "`return a + 3` in place of `return a + 2`"),
        ("bill.py::g", "`return a - 2` in place of `return a + 2`"),
    ]


def test_equal_arguments_and_those_whose_order_says_nothing_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "bill.py").write_text(
        "def most(a, b):\n    return min(a, b)\n\n\ndef twice(a):\n    return pow(a, a)\n\n\n"
        "def power(a, b):\n    return pow(a, b)\n"
    )
    faults = {
        name: [*plant_faults(tmp_path, [f"bill.py::{name}"], [], random.Random(0))]
        for name in ("most", "twice", "power")
    }
    assert {name: len(found) for name, found in faults.items()} == {"most": 0, "twice": 0, "power": 1}
    assert "pow(b, a)" in faults["power"][0].text
