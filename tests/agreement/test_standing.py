"""Teachers against the agents, by the consensus of the others."""

from hypothesis import given
from hypothesis import strategies as st

from tracemill.agreement.voting.teacher_standing import Heard, compare_teachers
from tracemill.flows.run_state.closing_table import closing_table_reliability


def test_who_is_with_the_others_where_just_one_of_the_two_is() -> None:
    steps = [
        Heard({"a": "x", "b": "x", "c": "x"}),  # a with the others, the student not
        Heard({"a": "y", "b": "student", "c": "student"}),  # the student with the others, a not
        Heard({"a": "student", "b": "student", "c": "student"}),  # both: says nothing of them
        Heard({"a": "x", "b": "y", "c": "z"}),  # no consensus
        Heard({"a": None, "b": "student", "c": "student"}),  # an answer without a vote is no agreement
    ]
    found = compare_teachers(steps)["a"]
    assert (found.agreed, found.asked, found.better, found.worse) == (2, 4, 1.0, 2.0)
    assert found.standing == 2 / 5
    assert not found.weaker  # three steps are too few to say so


def test_a_teacher_that_is_seldom_with_the_others_is_weaker() -> None:
    good, bad = Heard({"a": "x", "b": "x", "c": "x"}), Heard({"a": "y", "b": "student", "c": "student"})
    found = compare_teachers([good] * 3 + [bad] * 9)["a"]
    assert (found.compared, found.standing, found.weaker) == (12.0, 4 / 14, True)
    assert not compare_teachers([good] * 9 + [bad] * 3)["a"].weaker


def test_a_resolved_trace_counts_half_against_the_student() -> None:
    steps = [Heard({"a": "x", "b": "x", "c": "x"}, resolved=True)] * 4
    assert compare_teachers(steps)["a"].better == 2.0


def test_the_family_of_the_student_neither_judges_nor_is_judged() -> None:
    steps = [Heard({"a": "y", "b": "student", "k": "student"}, frozenset({"k"}))] * 20
    found = compare_teachers(steps)
    assert found.keys() == {"a", "b"}
    assert found["a"].asked == 0


@given(
    st.permutations(["a", "b", "c", "d"]), st.lists(st.sampled_from(["x", "y", "student", None]), min_size=4)
)
def test_the_order_of_teachers_does_not_matter(names: list[str], keys: list[str | None]) -> None:
    step = dict(zip("abcd", keys, strict=False))
    shuffled = {name: step[name] for name in names}
    assert compare_teachers([Heard(step)]) == compare_teachers([Heard(shuffled)])


def test_the_closing_table_warns() -> None:
    weak = {"standing": 0.28, "compared": 12.0, "agreed": 3, "asked": 12, "told": True, "weaker": True}
    few = {"standing": 0.5, "compared": 1.0, "agreed": 1, "asked": 2, "told": False, "weaker": False}
    assert closing_table_reliability({"a": weak, "b": few}) == [
        "   0.28  a, with the others at 3 of 12 steps: weaker than the agents, its votes make bad labels",
        "   0.50  b, with the others at 1 of 2 steps (too few to tell)",
    ]
