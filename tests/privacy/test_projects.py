"""Where a session worked: which folders are one project, and what tells two of them apart."""

import dataclasses
import re

import pytest

from tracemill.privacy.core.placeholder_keys import digest_with_placeholder_key, strip_placeholder_digits
from tracemill.privacy.personal.projects import (
    find_project_roots,
    find_trace_projects,
    normalise_project_folder,
)
from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message
from tracemill.records.project import Project
from tracemill.records.trace import Context, Step, Trace

KEY = b"k" * 32


def make_trace(*cwds: str | None, trace_id: str = "claude_code-1", **fields: object) -> Trace:
    messages = (Message("user", "x"), *(Message("assistant", "y") for _ in cwds))
    steps = tuple(Step(i, i + 1, cwd=cwd) for i, cwd in enumerate(cwds))
    context = (Context(0, messages, steps),)
    return Trace(trace_id, "claude_code", "claude_code", "claude_code", context, **fields)  # type: ignore[arg-type]


def worked_in(*cwds: str | None, key: bytes = KEY, trace_id: str = "t1", **fields: object) -> list[Project]:
    trace = make_trace(*cwds, trace_id=trace_id, **fields)
    return list(Redactor(key=key).redact_trace(trace)[0].worked_in)


def names(*cwds: str | None, **fields: object) -> list[str]:
    return [str(project) for project in worked_in(*cwds, **fields)]


@pytest.mark.parametrize(
    ("cwds", "roots"),
    [
        (["/work/alpha", "/work/alpha/src", "/work/alpha"], ["/work/alpha"]),
        (["/work/alpha", "/work/topsecret", "/work/topsecret/x"], ["/work/alpha", "/work/topsecret"]),
        (["/work/alpha", "/work/alphabet"], ["/work/alpha", "/work/alphabet"]),
        (["/work/alpha/", "/work/./alpha", "/work//alpha/x", "/work/b/../alpha"], ["/work/alpha/"]),
        (["/", "/work/a", "/work/b"], ["/", "/work/a", "/work/b"]),
        (["/home/kim", "/home/kim/a", "/home/kim/a/b"], ["/home/kim", "/home/kim/a"]),
        (["/Users/kim", "/Users/kim/a"], ["/Users/kim", "/Users/kim/a"]),
        (["/tmp", "/tmp/topsecret"], ["/tmp", "/tmp/topsecret"]),
        (["/srv/many/alpha", "/srv/many", "/srv/many/b"], ["/srv/many/alpha", "/srv/many", "/srv/many/b"]),
        (["/srv/many", "/srv/many/alpha", "/srv/many/b"], ["/srv/many"]),
        (["C:\\Work\\Alpha", "c:\\work\\alpha\\src", "c:/work/alpha"], ["C:\\Work\\Alpha"]),
        (["C:\\Users\\Kim", "C:\\Users\\Kim\\a"], ["C:\\Users\\Kim", "C:\\Users\\Kim\\a"]),
        (["\\\\srv\\share\\a", "\\\\srv\\share\\a\\b"], ["\\\\srv\\share\\a"]),
    ],
)  # fmt: skip
def test_folders_below_a_project_are_its_own_and_others_are_not(cwds: list[str], roots: list[str]) -> None:
    assert list(find_project_roots(cwds).values()) == roots


def test_a_session_that_began_above_its_first_step_is_of_the_folder_it_began_in() -> None:
    assert names("/work/alpha/src", "/work/alpha/docs", project="alpha") == ["alpha (/work/alpha)"]
    assert names("C:\\work\\Alpha\\src", project="Alpha") == ["Alpha (C:\\work\\Alpha)"]
    assert names("/home/dev/topsecret/x", project="dev") == ["dev (/home/dev)", "x (/home/dev/topsecret/x)"]
    # what it began in and never came back to is named all the same
    assert names("/work/topsecret", project="alpha") == ["topsecret (/work/topsecret)", "alpha"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/work/alpha", "/work/alpha/", True),
        ("/work/alpha", "//work/alpha", True),
        ("/work/alpha", "/work/Alpha", False),
        ("/work/alpha", "/work/alpha ", False),
        ("/work/alpha", "work/alpha", False),
        ("C:\\Work", "c:/work/", True),
        ("/work/Mu\u0308ller", "/work/M\u00fcller", True),
        ("/work/a\\b", "/work/a/b", False),
    ],
)
def test_what_tells_two_folders_apart(one: str, other: str, same: bool) -> None:
    assert (normalise_project_folder(one) == normalise_project_folder(other)) is same
    assert (worked_in(one)[0].digest == worked_in(other)[0].digest) is same


def test_two_people_have_two_projects_that_read_alike_and_no_name_is_kept() -> None:
    (one,), (two,) = worked_in("/Users/gundobald/webshop"), worked_in("/Users/kunigund/webshop")
    assert one.name == two.name == "webshop"
    assert one.place == two.place == "/Users/user/webshop"
    assert one.digest != two.digest
    assert re.search("gundobald|kunigund", repr([one, two])) is None


def test_a_digest_is_the_same_in_every_trace_and_another_under_another_key() -> None:
    folder = "/work/kim" + "@" + "northwind.io/api"
    (one,), (two,) = worked_in(folder, trace_id="t1"), worked_in(folder, trace_id="t2")
    assert one == two
    assert (one.name, one.place) == ("api", "/work/<EMAIL>/api")
    assert worked_in(folder, key=b"x" * 32)[0].digest != one.digest
    assert re.fullmatch("[0-9a-f]{32}", one.digest)


def test_a_session_without_a_folder_is_named_by_its_source_and_the_root_is_a_folder() -> None:
    assert names(None, "", "  ") == ["claude_code, no folder recorded"]
    assert names() == ["claude_code, no folder recorded"]
    assert names("/") == ["/ (/)"]
    assert len({worked_in(cwd)[0].digest for cwd in (None, "/", "/work")}) == 3
    openhands = make_trace("/workspace", repository="own/name")
    assert [str(p) for p in find_trace_projects(openhands, str, KEY)] == ["own/name"]


def test_no_two_kinds_share_a_digest_and_joints_cannot_move() -> None:
    made = [
        digest_with_placeholder_key(KEY, *parts)
        for parts in (("a", "bc"), ("ab", "c"), ("abc",), ("a", "b", "c"))
    ]
    assert len(set(made)) == 4
    assert worked_in(project="alpha")[0].digest != worked_in("alpha")[0].digest


def test_placeholders_lose_what_is_particular_to_a_trace() -> None:
    text = "/home/user_3f2ac91d/<EMAIL_3f2ac91d>/REDACTED_GITHUB_TOKEN_3f2a/<CARD_NUMBER_2_3f2ac91d>/user_x"
    assert strip_placeholder_digits(text) == "/home/user/<EMAIL>/REDACTED_GITHUB_TOKEN/<CARD_NUMBER>/user_x"


def test_the_places_of_a_trace_count_as_no_finding_of_their_own() -> None:
    trace = make_trace("/Users/klarsen/shop", "/Users/klarsen/shop/x", project="shop")
    _, counts = Redactor(key=KEY).redact_trace(trace)
    assert counts == {"USER": 2}


def test_projects_that_a_trace_brings_along_are_redacted_before_they_are_written() -> None:
    mail = "kim.larsen" + "@" + "northwind.io"
    made = Project("a" * 32, "webshop", "/home/user/webshop")
    given = (made, Project("/home/kunigund/secret", f"for {mail}", "/home/kunigund/secret"))
    trace = dataclasses.replace(make_trace("/home/kunigund/webshop"), worked_in=given)
    redacted, _ = Redactor(key=KEY).redact_trace(trace)
    kept, other = redacted.worked_in
    assert kept == made
    assert (other.name, other.place, len(other.digest)) == ("for <EMAIL>", "/home/user/secret", 32)
    again = dataclasses.replace(redacted, redaction=None)
    assert Redactor(key=KEY).redact_trace(again)[0].worked_in == redacted.worked_in
