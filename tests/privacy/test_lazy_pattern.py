"""Tests of patterns that are compiled when first used."""

import gc
import re

import pytest

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.publish_gate import strict_rules
from tracemill.privacy.redaction import redactor


def test_every_pattern_of_the_rules_compiles() -> None:
    assert redactor.Redactor
    assert strict_rules.__doc__
    patterns = [each for each in gc.get_objects() if type(each) is LazyPattern]  # runs no code of theirs
    assert len(patterns) > 600
    assert all(each.compiled.pattern == each.pattern for each in patterns)


def test_a_pattern_is_compiled_at_its_first_use_and_gives_what_re_gives() -> None:
    text, expression = "ab=1; cd=22; AB=3", r"(?P<name>[a-z]+)=(?P<v>\d+)"
    lazy, plain = LazyPattern(expression, re.IGNORECASE), re.compile(expression, re.IGNORECASE)
    assert "compiled" not in vars(lazy)
    assert [m.span("v") for m in lazy.finditer(text, 3)] == [m.span("v") for m in plain.finditer(text, 3)]
    assert vars(lazy)["compiled"] == plain
    assert [m.group() for m in lazy.finditer(text, 0, 10)] == ["ab=1", "cd=2"]
    assert lazy.match(text, 6)
    assert not lazy.match(text, 5)
    assert lazy.fullmatch(text, 6, 11)
    assert not lazy.fullmatch(text)
    assert (found := lazy.search(text, 1))
    assert found.span() == (1, 4)
    assert lazy.findall(text) == [("ab", "1"), ("cd", "22"), ("AB", "3")]
    assert lazy.split("1ab=2;") == ["1", "ab", "2", ";"]
    assert lazy.sub(lambda m: m["v"], text) == "1; 22; 3"
    assert dict(lazy.groupindex) == {"name": 1, "v": 2}


def test_a_fault_in_an_expression_is_told_at_its_first_use() -> None:
    lazy = LazyPattern("(")
    with pytest.raises(re.error, match="missing \\)"):
        lazy.search("")
