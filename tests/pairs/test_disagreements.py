"""What a judge is asked about among the actions that teachers propose."""

from tracemill.pairs.disagreements import Proposal, judged_proposal
from tracemill.records.message import Action


def test_a_judge_is_asked_about_the_first_proposal_that_is_no_part() -> None:
    part = Proposal("a", Action("a"), ("t1", "t2"), is_part=True)
    other = Proposal("b", Action("b"), ("t3",))
    assert judged_proposal([part, other]) is other
    assert judged_proposal([part]) is None
    assert judged_proposal([]) is None
