# ruff: noqa: E501 (values)
"""A secret that is recognised in one place of a trace is taken out of every other, in every form."""

import base64
import dataclasses
import json
import random
import re

import pytest
from secret_sessions import FORMS, PLACES, command_call, echoed_trace, random_secrets, trace_of
from whole_records import whole_text

from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.redaction.redactor import Redactor, RuleSet
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Trace

REDACTOR = Redactor(key=b"k")
PLACEHOLDER = re.compile(r"(?:<|REDACTED_)[A-Z_]+_[0-9a-f]{8}")
ENCODED = ("base64", "base64 of a login", "base64 for an address", "hex", "url")
WORDS = {
    "lower": "postgres", "words": "change-me-now", "camel": "getUserName2", "snake": "user_name_2",
    "model": "claude-3-5-sonnet-20241022", "class": "Base64Encoder", "cipher": "aes-256-gcm", "place": "src/app/main.py",
    "version": "v1.22.3-rc.1", "date": "2026-11-22T10:11:12Z", "host": "db1.internal.example.com", "number": "12345678",
    "variable": "${DB_PASSWORD}", "mail": "kim2@northwind.io", "call": "make_key(3)", "stand-in": "your-api-key-1",
    "sentence": "this is the 1 password", "branch": "feature/add-login-2", "sum": "sha256-crypt", "uuid": "0" * 8 + "-0000-4000-8000-" + "0" * 12,
    "test": "test1234", "settings": "production", "phrase": "enter your password again", "constant": "MAX_RETRY_COUNT_3",
}  # fmt: skip


def _held(trace: Trace, forms: list[str]) -> bool:
    messages = [message for context in trace.contexts for message in context.messages]
    text = "\n".join(
        [json.dumps(dataclasses.asdict(each)) for each in messages] + [whole_text(each) for each in messages]
    )
    return any(form in text for form in forms)


def _set(value: str) -> str:
    return "export DB_PASSWORD='{}'".format(value.replace("'", "'\\''"))


@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_taken_out_wherever_and_however_it_stands(form: str) -> None:
    """What is not recognised where it is set, such as Base64 that begins like a path, is none of this."""
    rng = random.Random()
    made, recognised, left = 0, 0, []
    for place in PLACES:
        for _ in range(3):
            for make, value in random_secrets(rng).items():
                made += 1
                if value in REDACTOR.redact_text(_set(value))[0]:
                    continue
                recognised += 1
                text = FORMS[form](value)
                redacted, _ = REDACTOR.redact_trace(echoed_trace(_set(value), text, place))
                forms = [value, json.dumps(value)[1:-1], *([text] if form in ENCODED else [])]
                if _held(redacted, forms):
                    left.append((make, place, value))
    assert made == len(PLACES) * 15
    assert recognised >= 0.95 * made
    assert len(left) <= 0.01 * recognised, left


def test_there_are_enough_forms_and_places() -> None:
    assert len(FORMS) * len(PLACES) >= 70


def test_placeholders_of_one_value_are_one() -> None:
    value = random_secrets(random.Random())["token"]
    text = " ".join(form(value) for form in FORMS.values())
    redacted, counts = REDACTOR.redact_trace(echoed_trace(_set(value), text, "result"))
    assert (
        len(
            {
                found.removeprefix("REDACTED_").removeprefix("<")
                for found in PLACEHOLDER.findall(whole_text(redacted))
            }
        )
        == 1
    )
    assert counts.total() >= len(FORMS)


def test_a_login_gives_away_its_password() -> None:
    value = random_secrets(random.Random())["token"]
    login = base64.b64encode(f"app:{value}".encode()).decode()
    trace = trace_of(
        Message("user", f"curl -H 'Authorization: Basic {login}' x"), Message("assistant", f"so {value}")
    )
    assert value not in whole_text(REDACTOR.redact_trace(trace)[0])


def test_a_long_value_is_found_across_numbered_lines() -> None:
    value = "".join(random.Random().choices("abcdefghkmnpqrstuvwxyzABCDEFGHK23456789", k=60)) + "7aQ"
    shown = f"     1→{value[:40]}\n     2→{value[40:]}\n"
    trace = trace_of(
        Message("user", f"API_TOKEN={value}"), Message("assistant", "so"), Message("user", shown)
    )
    content = REDACTOR.redact_trace(trace)[0].contexts[0].messages[2].content
    assert value[:40] not in content
    assert value[40:] not in content


@pytest.mark.parametrize("name", WORDS)
def test_what_is_no_secret_elsewhere_is_not_carried_there(name: str) -> None:
    value = WORDS[name]
    assert judge_distinctiveness(value) is Distinctiveness.NOT
    code = f"class A:\n    x = '{value}'  # {value}\n"
    plain = (
        Redactor(key=b"k").redact_trace(trace_of(Message("user", code)))[0].contexts[0].messages[0].content
    )
    for line in (f"export DB_PASSWORD='{value}'", f"mysql -u root -p{value} app", f"API_TOKEN={value} make"):
        trace = trace_of(command_call(line), Message("tool", code, tool_call_id="c1"))
        assert REDACTOR.redact_trace(trace)[0].contexts[0].messages[1].content == plain


@pytest.mark.parametrize(
    "code", ["def {}(x):", "import {}", "x.{} = 1", "{}(3)", "{}.load()", "class {}:", "{} = 1", "std::{}"]
)
def test_a_value_that_is_a_name_in_the_code_stays_there(code: str) -> None:
    name = "Sunrise2041"
    source = f"{code.format(name)}\n    y = '{name}'\n"
    trace = trace_of(
        Message("user", f'DB_PASSWORD="{name}"'), Message("assistant", "so"), Message("user", source)
    )
    assert REDACTOR.redact_trace(trace)[0].contexts[0].messages[2].content == source


def test_a_value_of_a_names_shape_is_found_where_it_stands_alone() -> None:
    for value in ("Sunrise2041", "marble7marble7"):
        told = Message("tool", f"using {value} now, not x{value}y", tool_call_id="c1")
        trace = trace_of(command_call(f'export DB_PASSWORD="{value}"'), told)
        content = REDACTOR.redact_trace(trace)[0].contexts[0].messages[1].content
        assert re.fullmatch(rf"using <PASSWORD_[0-9a-f]{{8}}> now, not x{value}y", content)


@pytest.mark.parametrize(
    "value", ["summerinparis", "OSIXDRl5", "Blue-Kettle-93", "kLeMh(Aqyw)*xqkm", "YlTiOv@JMk/yYDHT"]
)
def test_a_password_that_reads_as_a_word_or_as_code_is_carried(value: str) -> None:
    env = ToolCall("c1", "Bash", '{"command": "cat .env"}')
    told = f"401 with {value} again, also `{value}` and 'app:{value}@db'"
    messages = (
        Message("assistant", "", (env,)),
        Message("tool", f"DEBUG=1\nDB_PASSWORD='{value}'\n", tool_call_id="c1"),
        Message("user", told),
    )
    content = REDACTOR.redact_trace(trace_of(*messages))[0].contexts[0].messages[2].content
    assert value not in content
    assert len(PLACEHOLDER.findall(content)) == 3


@pytest.mark.parametrize(
    "other",
    ["cd /srv/{}/app", "DB_USER={}", "dbname: {}", "from {} import views", "{}.settings", '"database": "{}"'],
)
def test_a_password_that_is_the_name_of_something_else_stays_there(other: str) -> None:
    value = "parceldesk"
    text = f"{other.format(value)}\nthe {value} is up"
    told = Message("user", f"export DB_PASSWORD={value}"), Message("assistant", "so"), Message("user", text)
    assert REDACTOR.redact_trace(trace_of(*told))[0].contexts[0].messages[2].content == text


@pytest.mark.parametrize(
    "said",
    [
        "./check.sh R42Bs\\(Emdq\\)\\*s\\'C\\$T4",
        './check.sh "R42Bs(Emdq)*s\'C\\$T4"',
        "./check.sh 'R42Bs(Emdq)*s'\"'\"'C$T4'",
        "row = {'first': \"R42Bs(Emdq)*s'C$T4\"}",
    ],
)
def test_a_value_is_found_as_a_shell_and_python_spell_it(said: str) -> None:
    value = "R42Bs(Emdq)*s'C$T4"
    call = ToolCall("c2", "Bash", json.dumps({"command": said}))
    told = Message("user", f'DB_PASSWORD="{value}"'), Message("assistant", "so", (call,))
    message = REDACTOR.redact_trace(trace_of(*told))[0].contexts[0].messages[1]
    assert "Emdq" not in message.tool_calls[0].arguments
    again = REDACTOR.redact_trace(trace_of(told[0], Message("assistant", said)))[0].contexts[0].messages[1]
    assert "Emdq" not in again.content


@pytest.mark.parametrize(
    "value", ["KkgnA0JR", "knFNn&P2p", "VlKWM?Se31<hgUs", "e9HXgfKTPQok7A", "Sunrise2041"]
)
def test_a_short_value_is_found_across_numbered_lines(value: str) -> None:
    half = len(value) // 2
    shown = f"     1→[app]\n     2→first = {value[:half]}\n     3→{value[half:]}\n     4→port = 8080\n"
    told = Message("user", f"DB_PASSWORD='{value}'"), Message("assistant", "so"), Message("user", shown)
    content = REDACTOR.redact_trace(trace_of(*told))[0].contexts[0].messages[2].content
    assert value[:half] not in content
    assert value[half:] not in content
    assert content.endswith("\n     4→port = 8080\n")


def test_names_and_mails_are_not_carried() -> None:
    trace = trace_of(
        Message("user", "mail kim.larsen@northwind.io"),
        Message("assistant", "a2ltLmxhcnNlbkBub3J0aHdpbmQuaW8="),
    )
    assert (
        REDACTOR.redact_trace(trace)[0].contexts[0].messages[1].content == "a2ltLmxhcnNlbkBub3J0aHdpbmQuaW8="
    )


def test_a_value_that_is_allowed_stays() -> None:
    value = random_secrets(random.Random())["token"]
    allowing = Redactor.from_environment({}, hostname="x", key=b"k", allow=[f"see {value} there"])
    redacted, _ = allowing.redact_trace(echoed_trace(_set(value), value, "user"))
    assert redacted.contexts[0].messages[3].content == f"see {value} there"


def test_what_older_rules_left_is_taken_out_when_a_trace_is_redacted_again() -> None:
    """Only the digits of a placeholder say there what a value was."""
    value = random_secrets(random.Random())["token"]
    trace = echoed_trace(_set(value), value, "user")
    call = REDACTOR.redact_trace(trace)[0].contexts[0].messages[1]
    messages = (trace.contexts[0].messages[0], call, *trace.contexts[0].messages[2:])
    context = dataclasses.replace(trace.contexts[0], messages=messages)
    stored = dataclasses.replace(trace, contexts=(context,), redaction="r6")
    assert value in whole_text(stored)
    again = Redactor(key=b"k", rules=RuleSet("r8")).redact_again(stored)
    assert value not in whole_text(again.trace)
    assert set(PLACEHOLDER.findall(whole_text(again.trace))) == set(PLACEHOLDER.findall(whole_text(call)))


def test_what_a_teacher_repeats_is_taken_out_in_every_form() -> None:
    rng = random.Random()
    for drawn in random_secrets(rng).values():
        value = drawn.lstrip("/")  # what begins like a path is not recognised where it is set
        again = REDACTOR.redact_again(echoed_trace(_set(value), value, "user"))
        for name, form in FORMS.items():
            told = form(value)
            call = ToolCall("c9", "Bash", json.dumps({"command": f"mysql --x {told}"}))
            message = again.message(Message("assistant", f"so {told}", (call,), reasoning=told))
            assert value not in whole_text(message), name
            assert told not in message.content, name
            assert told not in str(message.reasoning), name


def test_one_message_is_redacted_in_two_passes_too() -> None:
    value = random_secrets(random.Random())["token"]
    call = ToolCall("c1", "Bash", json.dumps({"command": f"echo {value}"}))
    message, _ = REDACTOR.redact_message(Message("assistant", f"export DB_PASSWORD={value}", (call,)))
    assert value not in whole_text(message)
    assert len(set(PLACEHOLDER.findall(whole_text(message)))) == 1


def test_a_trace_without_a_secret_is_gone_through_once() -> None:
    trace = trace_of(
        command_call("ls"), Message("tool", "a.py /home/kimlarsen/x kim@northwind.io", tool_call_id="c1")
    )
    once, counts = REDACTOR.redact_trace(trace)
    assert set(counts) <= {"USER", "EMAIL"}
    assert REDACTOR.redact_trace(dataclasses.replace(once, redaction=None))[0] == once


def test_a_stand_in_with_a_part_of_its_own_is_carried() -> None:
    for value, carried in (("changeme-fwuyn", True), ("change-me-now", False), ("changeme-default", False)):
        level = judge_distinctiveness(value, "SECRET")
        assert (level is not Distinctiveness.NOT) == carried, value


def test_a_value_of_a_vendors_form_is_carried_whatever_its_letters() -> None:
    value = "NRAK-" + "YELYP9RU9EAO88TOIRJNY09963H"
    assert judge_distinctiveness(value, "NEWRELIC_KEY") is Distinctiveness.ANYWHERE
    assert judge_distinctiveness(value, "SECRET") is not Distinctiveness.ANYWHERE


def test_a_value_with_blanks_is_found_over_a_line_end() -> None:
    value = "icns lmws ouyy vtxn"
    text = f'smtp_password: "{value}"\nport: 25'
    said = "     1\u2192first = icns lmws\n     2\u2192 ouyy vtxn\n     3\u2192port = 8080"
    trace = trace_of(Message("user", text), Message("user", said))
    redacted = REDACTOR.redact_trace(trace)[0].contexts[0].messages[1].content
    assert "lmws" not in redacted
    assert "vtxn" not in redacted
    assert "port = 8080" in redacted


def test_the_start_of_a_value_goes_whose_rest_has_a_placeholder() -> None:
    first, rest = "SG.OfhbJPJWDTgERRNxma66XV.Lf3iK_AccW", "RTTd0-k7iL3s4KC5tOH2gSaBXk0BW2ts0"
    said = f"     1\u2192first = {first}\n     2\u2192{rest}\n     3\u2192port = 8080"
    trace = trace_of(Message("user", f"Use {first}{rest} here."), Message("user", said))
    redacted = REDACTOR.redact_trace(trace)[0].contexts[0].messages[1].content
    assert first not in redacted
    assert rest not in redacted
