"""What a line does in any case, what only if something before it works, where, and who sees its messages."""

import json
from typing import Any

import pytest

from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.swe_agent_commands import parse_swe_agent_command
from tracemill.records.message import Action, ToolCall

WORLD = EnvironmentState("claude_code", "/repo")


def line(command: str) -> ActionKeys:
    return ladder_keys(Action("", (ToolCall("c", "Bash", json.dumps({"command": command})),)), WORLD)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cd /repo; rm -rf x", "rm -rf x"),
    ],
)
def test_lines_in_one_normal_form(one: str, other: str) -> None:
    assert line(one).canonical == line(other).canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cd a; ls", "cd a && ls"),
        ("pytest a 2>&1 | head -50 | tail -5", "pytest a"),
        ("grep -n x a && sed -n 1,5p b", "grep -n x a ; sed -n 1,5p b"),
        ("python3 -m pytest a", "pytest a"),
        (".venv/bin/pytest a", "/repo/.venv/bin/pytest a"),
        ("python -m unittest discover -s tests", "python -m unittest discover tests"),
        ("sed -n 1,5p b.py", "sed -n 1,5p < b.py"),
        ("cat b.py", "cat < b.py"),
        ("cat b.py", "bash -lc 'cat b.py'"),
    ],
)
def test_lines_of_one_effect(one: str, other: str) -> None:
    assert line(one).effect == line(other).effect


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("make | cat && make install", "make && make install"),
        ("x && make | cat && make install", "x && make && make install"),
        ("make 2>&1 | tee a", "make | tee a"),
        ("for i in a; do make 2>&1; done | tee l", "for i in a; do make; done | tee l"),
        ("python2 -m pytest a", "python3 -m pytest a"),
        ("python3.8 a.py", "python3.11 a.py"),
        ("python2 tests/test_a.py", "python3 tests/test_a.py"),
        ("one/bin/python -m pytest a", "two/bin/python -m pytest a"),
        (".venv/bin/pytest", "pytest"),
        ("poetry run pytest a", "uv run pytest a"),
        ("pip2 install lamp", "pip install lamp"),
        ("./mvnw test", "mvn test"),
        ("./gradlew build", "gradle build"),
        ("tree -L 2", "tree . -L 2"),
    ],
)
def test_lines_apart_by_effect_and_about_the_same(one: str, other: str) -> None:
    assert line(one).effect != line(other).effect
    assert line(one).intent == line(other).intent


def test_what_runs_in_the_background_or_a_pipe_changes_no_folder() -> None:
    assert line("cd b && make & rm y").effects != line("cd b && make; rm y").effects
    assert line("cd b && make & rm y").effect != line("cd b && make; rm y").effect
    assert line("cd a | cat && rm x").effect != line("cd a; rm x").effect


@pytest.mark.parametrize(
    ("command", "other", "same"),
    [
        ("find_file b.py", "find . -name b.py", True),
        ("find_file b.py src", "find src -type f -name b.py", True),
        ("search_file foo a.py", "grep -n foo a.py", True),
        ("search_dir foo", "grep -rn foo .", False),
        ("search_dir 'a.b(c)' src", "grep -rn 'a.b(c)' src", False),
    ],
)
def test_searches_of_swe_agent_are_about_what_those_of_the_shell_are(
    command: str, other: str, same: bool
) -> None:
    world = EnvironmentState("swe_agent", "/repo")
    one, two = (ladder_keys(Action("", (parse_swe_agent_command(each),)), world) for each in (command, other))
    assert one.intent == two.intent
    assert (one.effect == two.effect) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("go test ./...", "GIT_CONFIG_GLOBAL=/dev/null go test ./...", False),
        ("CI=1 pytest a.py", "pytest a.py", False),
        ("CI=1 pytest a.py", "env CI=1 pytest a.py -v", True),
        ("A=1 B=2 pytest a.py", "B=2 A=1 pytest a.py | tail -5", True),
    ],
)
def test_variables_set_for_a_test_run_are_another_effect_of_one_intent(
    one: str, other: str, same: bool
) -> None:
    first, second = line(one), line(other)
    assert first.action_class == second.action_class == "run_test"
    assert first.intent == second.intent
    assert (first.effect == second.effect) is same


@pytest.mark.parametrize(
    ("tool", "asks", "within"),
    [
        (
            "exec_command",
            {"sandbox_permissions": "require_escalated"},
            {"sandbox_permissions": "use_default"},
        ),
        ("shell", {"with_escalated_permissions": True}, {"with_escalated_permissions": False}),
        ("Bash", {"dangerouslyDisableSandbox": True}, {"dangerouslyDisableSandbox": False}),
    ],
)
def test_a_command_outside_of_the_sandbox_is_another_effect_of_one_intent(
    tool: str, asks: dict[str, Any], within: dict[str, Any]
) -> None:
    harness = "claude_code" if tool == "Bash" else "codex"
    plain, inside, outside = (
        ladder_keys(
            Action("", (ToolCall("", tool, json.dumps({"command": "go test ./...", **more})),)),
            EnvironmentState(harness, "/repo"),
        )
        for more in ({}, within, asks)
    )
    assert plain.effect == inside.effect != outside.effect
    assert plain.intent == outside.intent
    assert plain.action_class == outside.action_class == "run_test"


@pytest.mark.parametrize("answer", ["flag{two words}", "flag{a", "it's", "'one word'"])
def test_all_that_is_handed_in_with_submit_is_the_answer(answer: str) -> None:
    world = EnvironmentState("swe_agent", "/repo")
    given, other, none = (
        ladder_keys(Action("", (parse_swe_agent_command(f"submit {each}".strip()),)), world)
        for each in (answer, "flag{Two words}", "")
    )
    assert given.action_class == other.action_class == none.action_class == "finish"
    quoted = ladder_keys(Action("", (parse_swe_agent_command(f'submit "{answer}"'),)), world)
    assert len({given.effect, other.effect, none.effect}) == 3
    assert (quoted.effect == given.effect) is (" " not in answer)
    assert given.intent == other.intent == none.intent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a from t where x = 'a b'", "select a from t where x = 'a  b'"),
        ("select a from t where x = 'A'", "select a from t where x = 'a'"),
        ("select a from t where 'a' = x", 'select a from t where "a" = x'),
        ("select 'a' from t", 'select "a" from t'),
        ("select a from t union select b from t", "select a from t union all select b from t"),
        ("insert into t values ('a  b')", "insert into t values ('a b')"),
    ],
)
def test_statements_that_give_other_rows_are_apart_and_no_pair(one: str, other: str) -> None:
    first, second = sql(one), sql(other)
    assert first.canonical != second.canonical
    assert first.effect != second.effect
    assert first.intent == second.intent


def test_a_statement_that_cannot_be_read_keeps_the_blanks_in_its_quotes() -> None:
    assert sql("select 'a  b'; drop t").canonical == sql("select  'a  b';\n drop t").canonical
    assert sql("select 'a  b'; drop t").canonical != sql("select 'a b'; drop t").canonical
    assert sql("select 1; -- x\n drop t").canonical != sql("select 1; -- x drop t").canonical
    assert sql('SELECT A  FROM T where x = "b"').canonical == sql('select a from t where x="b"').canonical


def sql(query: str) -> ActionKeys:
    return ladder_keys(
        Action("", (ToolCall("c", "sql", json.dumps({"query": query})),)), EnvironmentState("generic")
    )


def test_a_test_run_whose_output_is_kept_is_a_test_run_and_a_text_that_is_kept_a_file() -> None:
    assert [line(f"{first} | tee log").action_class for first in ("pytest a.py", "echo x", "cat a")] == [
        "run_test",
        "create",
        "create",
    ]
    assert line("A=1").intent != line("A=2").intent
    assert line("A=1 pytest a.py").effect == line("A=1 pytest -q a.py").effect
