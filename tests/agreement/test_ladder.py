"""Levels of the ladder: what is the same on which, and that each level implies the next."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.agreement.equivalence.ladder import ActionKeys, in_ladder_dead_zone, ladder_keys
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.swe_agent_commands import parse_swe_agent_command
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Step, Trace, TraceState

REAL = os.environ.get("TRACEMILL_REAL_TRACES")
TABLES = os.environ.get("TRACEMILL_MULTITEACHER")
NUMBERED = "\n".join(
    f"     {n}\t{line}" for n, line in enumerate(["def f(x):", "    y = x", "    return y"], 1)
)


def act(name: str, **arguments: Any) -> Action:
    return Action("", (ToolCall("c", name, json.dumps(arguments)),))


def bash(line: str) -> Action:
    return act("Bash", command=line)


def sql(query: str) -> Action:
    return act("sql", query=query)


def both(*actions: Action) -> Action:
    return Action("", tuple(call for action in actions for call in action.tool_calls))


WORLD = EnvironmentState("claude_code", "/repo")


def state_after(*seen: tuple[Action, str]) -> TraceState:
    """A Claude Code state whose earlier calls came back with these texts."""
    messages = [Message("user", "mend f in a.py")]
    for number, (action, result) in enumerate(seen):
        call = action.tool_calls[0]
        messages.append(Message("assistant", "", (ToolCall(f"s{number}", call.name, call.arguments),)))
        messages.append(Message("tool", result, tool_call_id=f"s{number}"))
    cut = len(messages)
    messages.append(Message("assistant", "Done."))
    context = Context(0, tuple(messages), (Step(0, cut, cwd="/repo"),))
    return TraceState(Trace("t", "claude_code", "d", "claude_code", (context,)), context, context.steps[0])


def edit(old: str, new: str) -> Action:
    return act("Edit", file_path="/repo/a.py", old_string=old, new_string=new)


SAME_EFFECT = [
    (bash("grep -rn foo src"), bash("grep --recursive --line-number foo src")),
    (bash("pytest -q tests/a.py"), bash("time pytest -q tests/a.py")),
    (bash("pytest -q tests/a.py"), bash("(cd /repo && pytest -q tests/a.py)")),
    (bash("npm test"), bash("npm run test")),
    (bash("yarn test a"), bash("yarn run test a")),
    (
        both(edit("y = x", "y = 1"), act("Write", file_path="/repo/b.py", content="b")),
        both(act("Write", file_path="/repo/b.py", content="b"), edit("y = x", "y = 1")),
    ),
    (bash("rg -n 'foo|bar' src"), bash("grep -rnE 'foo|bar' src/")),
    (act("Grep", pattern="foo", output_mode="content"), bash("rg foo")),
    (act("Glob", pattern="**/*.py"), bash("find . -name '*.py' -type f")),
    (bash("pytest -q tests/test_a.py::test_x"), bash("python -m pytest -x tests/test_a.py::test_x -v")),
    (bash("pytest tests/a.py tests/b.py"), bash("pytest tests/b.py tests/a.py 2>&1 | tail -5")),
    (bash("find . -exec wc -l {} + -o x"), bash("find .  -exec wc -l {} + -o x")),
    (
        bash("find . -type f -name '*.c' -exec md5sum {} +"),
        bash("find . -name '*.c' -type f -exec md5sum {} ';'"),
    ),
    (bash("find . -name '*.c' -exec grep -l x {} +"), bash("find . -name '*.c' -exec grep -l x {} ';'")),
    (bash("find . -name '*.c' | xargs -n1 wc -l"), bash("find . -name '*.c' -exec wc -l {} ';'")),
    (bash("cd /repo && ls src"), bash("ls /repo/src")),
    (bash("cut -d: -f1 x | sort | uniq"), bash("cut -d: -f1 x | sort -u")),
    (bash("find src -name '*.py' | xargs grep -n foo"), bash("grep -rn foo src --include='*.py'")),
    (bash("find . -type f -name '*.o' -delete"), bash("find . -name '*.o' -type f -exec rm -f {} +")),
    (bash("find . -name '*.c' -exec wc -l {} +"), bash("find . -type f -name '*.c' | xargs wc -l")),
    (
        sql("select a, b from t where x in (1, 2)"),
        sql("SELECT b, a FROM t WHERE x=2 OR x=1"),
    ),
    (bash("cat a.json | jq .b | sort"), bash("jq .b a.json | sort")),
    (bash("pytest -q | tail -5"), bash("pytest -q | head -40")),
    (bash("du -s /repo/"), bash("du -s /repo")),
]

OTHER_EFFECT = [
    (
        act("Read", file_path="/repo/a.py", limit=10),
        act("Read", file_path="/repo/a.py", offset=500, limit=10),
    ),
    (bash("grep -rn foo src"), bash("grep -rni foo src")),
    (bash("grep -rn foo src"), bash("grep -rn foo tests")),
    (bash("pytest tests/a.py"), bash("pytest tests/a.py -k slow")),
    (bash("cat a.py | wc -l"), bash("cat a.py")),
    (bash("sort -k1 -k2 x | grep a"), bash("sort -k2 -k1 x | grep a")),
    (bash("tar -tvf a.tar"), bash("tar -tf a.tar")),
    (bash("tail -n 1 x"), bash("tail -n 2 x")),
    (bash("tail -n 1 x"), bash("tail -n +1 x")),
    (bash("find . -name '*.c' | wc -l"), bash("find . -type f -name '*.c' | wc -l")),
    (bash("find . -name '*.o' -delete"), bash("find . -name '*.o' -exec rm {} +")),
    (bash("find a | xargs rm"), bash("find b | xargs rm")),
    (bash("find . -name '*.c' -exec wc -l {} +"), bash("find . -name '*.c' -exec wc -l {} ';'")),
    (bash("find . -name '*.c' | xargs grep -c x"), bash("find . -name '*.c' -exec grep -c x {} ';'")),
    (bash("cd src && ls -a"), bash("ls -a src")),
    (bash("ls; cd src"), bash("ls")),
    (sql("select a from one.t"), sql("select a from two.t")),
    (bash("python3 run.py 2>/dev/null"), bash("python3 run.py")),
    (bash("cp -r a b"), bash("cp -rn a b")),
    (
        sql("select a from t union select a from u where x"),
        sql("select a from t where x union select a from u"),
    ),
    (
        sql("select a from t where x = 1 and y = 2"),
        sql("select a from t where x = 1 or y = 2"),
    ),
    (
        sql("select a from t order by b limit 1"),
        sql("select a from t order by b desc limit 1"),
    ),
    (
        sql("select a from t order by b desc limit 1"),
        sql("select a from t where b = (select max(b) from t)"),
    ),
    (bash("pytest -q | grep -c FAILED"), bash("pytest -q")),
    (bash("pytest -q | grep FAILED"), bash("pytest -q | grep Error")),
    (bash("pytest -q | tee log"), bash("pytest -q")),
    (bash("du -s /repo/*/"), bash("du -s /repo/*")),
    (bash("rm -rf build"), bash("rm -rf dist")),
    (bash("echo 'unclosed"), bash("echo 'unclosed too")),
    (bash("(cd a && make)"), bash("(cd b && make)")),
    (both(bash("make"), bash("make test")), both(bash("make test"), bash("make"))),
]


@pytest.mark.parametrize(("one", "other"), SAME_EFFECT)
def test_the_same_effect_in_other_words(one: Action, other: Action) -> None:
    assert ladder_keys(one, WORLD).effect == ladder_keys(other, WORLD).effect
    assert ladder_keys(one, WORLD).intent == ladder_keys(other, WORLD).intent


@pytest.mark.parametrize(("one", "other"), OTHER_EFFECT)
def test_another_effect(one: Action, other: Action) -> None:
    assert ladder_keys(one, WORLD).effect != ladder_keys(other, WORLD).effect


def test_a_shell_that_does_not_last_forgets_where_a_line_went() -> None:
    moved, stayed = bash("cd src && ls -a"), bash("ls -a src")
    for harness, same in (("claude_code", False), ("pi", True), ("some_agent", True)):
        world = EnvironmentState(harness, "/repo")
        one, other = ladder_keys(moved, world), ladder_keys(stayed, world)
        assert (one.effect == other.effect) is same
        assert one.intent == other.intent
    nowhere = EnvironmentState("claude_code")
    assert ladder_keys(bash("cd /a && ls"), nowhere).effect == ladder_keys(bash("ls /a"), nowhere).effect


def test_questions_are_one_intent_and_their_own_effects() -> None:
    def ask(text: str) -> Action:
        return act("AskUserQuestion", questions=[{"question": text}])

    one, other, text = (
        ladder_keys(each, WORLD) for each in (ask("Which?"), ask("When?"), Action("Shall I?"))
    )
    assert one.effect == ladder_keys(ask("Which?"), WORLD).effect != other.effect
    assert one.intent == other.intent == text.intent
    assert one.decisive
    first, second = (ladder_keys(both(ask(each), bash("ls")), WORLD) for each in ("Which?", "When?"))
    assert first.effect != second.effect
    assert first.intent == second.intent


def test_the_tail_of_a_file_is_not_all_of_it() -> None:
    whole, tail = act("Read", file_path="/repo/a.py"), act("Read", file_path="/repo/a.py", offset=500)
    assert ladder_keys(whole, WORLD).effect != ladder_keys(tail, WORLD).effect
    assert ladder_keys(whole, WORLD).intent == ladder_keys(tail, WORLD).intent
    refused = Action("", (ToolCall("c", "view", '{"path": "/r/a.py", "view_range": [0, 40]}'),))
    world = EnvironmentState("generic", "/r")
    read = Action("", (ToolCall("c", "view", '{"path": "/r/a.py", "view_range": [1, 40]}'),))
    assert ladder_keys(refused, world).effect != ladder_keys(read, world).effect


def test_edits_are_compared_by_the_text_they_leave() -> None:
    world = environment_at(state_after((act("Read", file_path="/repo/a.py"), NUMBERED)), ())
    short, long = (
        edit("return y", "return y + 1"),
        edit("    y = x\n    return y", "    y = x\n    return y + 1"),
    )
    other, comment = edit("return y", "return y - 1"), edit("return y", "return y + 1  # one more")
    one, same = ladder_keys(short, world), ladder_keys(long, world)
    assert one.canonical != same.canonical
    assert one.effect == same.effect
    for changed in (other, comment):
        assert one.effect != ladder_keys(changed, world).effect
        assert one.intent == ladder_keys(changed, world).intent
    unknown = EnvironmentState("claude_code", "/repo")
    assert ladder_keys(short, unknown).effect != ladder_keys(long, unknown).effect


def test_an_edit_moves_the_world_on_and_a_checkout_forgets_it() -> None:
    read = (act("Read", file_path="/repo/a.py"), NUMBERED)
    changed = (edit("return y", "return y + 1"), "The file has been updated.")
    after = environment_at(state_after(read, changed), ()).text_of("/repo/a.py")
    assert after is not None
    assert "\n".join(after.lines) == "def f(x):\n    y = x\n    return y + 1"
    gone = state_after(read, changed, (bash("git checkout ."), ""))
    assert environment_at(gone, ()).text_of("/repo/a.py") is None
    removed = state_after(read, changed, (bash("rm /repo/a.py"), ""))
    assert environment_at(removed, ()).text_of("/repo/a.py") is None


def test_a_world_sees_no_later_message() -> None:
    state = state_after((act("Read", file_path="/repo/a.py"), NUMBERED))
    record = replay_context(state.context, "claude_code")
    assert EnvironmentState("claude_code", "/repo", (), record, 2).text_of("/repo/a.py") is None
    assert EnvironmentState("claude_code", "/repo", (), record, 3).text_of("/repo/a.py") is not None


def test_sql_is_compared_by_its_normal_form() -> None:
    tools = (ToolSpec("execute_sql", "", {"properties": {}}, "inferred"),)
    world = EnvironmentState("intercode", None, tools)

    def sql(text: str) -> ActionKeys:
        return ladder_keys(act("execute_sql", command=text), world)

    assert sql("select NAME from t;").canonical == sql("SELECT t1.name AS n FROM t AS t1").canonical
    assert sql("SELECT a FROM t").effect != sql("SELECT b FROM t").effect
    assert sql("SELECT a FROM t").intent == sql("SELECT b FROM t").intent
    assert (sql("SHOW TABLES").action_class, sql("SELECT a FROM t").action_class) == ("list", "read")
    assert (sql("DELETE FROM t").action_class, sql("### no statement").action_class) == ("edit", "edit")


@pytest.mark.parametrize(
    "condition",
    ["n = {0}", "n != {0} AND m <> {0}", "n LIKE {0}", "n IN ({0}, {0})", "n NOT IN ( {0} ) OR m >= {0}"],
)
def test_double_quotes_hold_a_text_where_it_is_compared_and_may_hold_a_name_elsewhere(condition: str) -> None:
    world = EnvironmentState(
        "intercode", None, (ToolSpec("execute_sql", "", {"properties": {}}, "inferred"),)
    )

    def of(query: str) -> ActionKeys:
        return ladder_keys(act("execute_sql", command=query), world)

    double, single = (f"SELECT a FROM t WHERE {condition.format(each)}" for each in ('"Oslo"', "'Oslo'"))
    assert of(double).canonical == of(single).canonical
    assert of(double).effect == of(single).effect
    for named in (double.replace(" a ", ' "a" '), double.replace('"Oslo"', '"t"."Oslo"')):
        plain = single if "." in named else named.replace('"', "'")
        assert of(named).effect != of(plain).effect
        assert of(named).intent == of(plain).intent


def test_the_dead_zone_holds_parts_of_reads_and_other_bodies_for_one_file() -> None:
    one, two = act("Read", file_path="/repo/a.py"), act("Read", file_path="/repo/b.py")
    assert in_ladder_dead_zone(ladder_keys(one, WORLD), ladder_keys(both(one, two), WORLD))
    assert not in_ladder_dead_zone(ladder_keys(one, WORLD), ladder_keys(two, WORLD))
    assert in_ladder_dead_zone(ladder_keys(edit("a", "b"), WORLD), ladder_keys(edit("a", "c"), WORLD))
    scratch = (
        act("Write", file_path=f"/repo/{name}", content="x") for name in ("reproduce.py", "debug_it.py")
    )
    first, second = (ladder_keys(each, WORLD) for each in scratch)
    assert in_ladder_dead_zone(first, second)


@pytest.mark.parametrize(
    ("one", "other", "dead"),
    [
        ("find . -name '*.c' -exec cat {} + | wc -l", "find . -name '*.c' | xargs wc -l", True),
        ("find . -type f -exec ls -l {} +", "ls -la", True),
        ("cal -3 12 2120", "cal 12 2120", False),
        ("npm install left-pad", "npm install right-pad", True),
        ("tar -cf a.tar src", "tar -cf b.tar docs", False),
        ("python -c 'print(1)'", "python -c 'print(2)'", True),
    ],
)
def test_command_lines_about_the_same_are_in_the_dead_zone(one: str, other: str, dead: bool) -> None:
    assert in_ladder_dead_zone(ladder_keys(bash(one), WORLD), ladder_keys(bash(other), WORLD)) is dead


def _patch_by_tool(body: str) -> Action:
    return act("apply_patch", input=f"*** Begin Patch\n{body}")


def _patch_by_shell(body: str) -> Action:
    return bash(f"apply_patch <<'EOF'\n*** Begin Patch\n{body}\nEOF")


VOCABULARY = """cat a.py src/ grep -rn 'x | && head -5 find . -name '*.py' ; pytest tests/a.py::t
    sed -n '1,9p' cd sub > out ( ) $( if ls -la wc -l xargs 2>&1 || true sort uniq -exec {} + rm git diff
    python3 python run.py tail -1 -n1 -k2 tar -xzf xf -v cp -R -r -delete 2>/dev/null <"""
WHOLE = [
    "find . -type f -name '*.o'",
    "| xargs grep foo",
    "-exec wc -l {} +",
    "cat a.py |",
    "-exec rm -f {} ;",
]
WORDS = st.sampled_from([*VOCABULARY.split(), *WHOLE, "\n", "'x y'"])
QUERIES = st.builds(
    "SELECT {}{} FROM {}{}{}".format,
    st.sampled_from(["", "DISTINCT "]),
    st.sampled_from(["a, b", "b, a", "*", "COUNT(a)", "a"]),
    st.sampled_from(["t", "db.t", "t JOIN u ON t.a = u.a", "u"]),
    st.sampled_from(["", " WHERE a IN (1, 2)", " WHERE a = 2 OR a = 1", " WHERE b = (SELECT MAX(b) FROM t)"]),
    st.sampled_from(["", " ORDER BY b DESC LIMIT 1", " ORDER BY b", " UNION SELECT a FROM u WHERE b = 1"]),
)
LINES = st.lists(WORDS, max_size=9).map(" ".join)
ACTIONS = st.lists(
    st.one_of(
        LINES.map(bash),
        QUERIES.map(sql),
        st.builds(lambda n: act("Read", file_path="a.py", limit=n), st.integers(1, 40)),
        st.builds(edit, st.sampled_from(["y = x", "return y", "zz"]), st.sampled_from(["q", "return y", ""])),
        st.builds(lambda n, v: act(n, pattern=v), st.sampled_from(["Grep", "Glob"]), st.text(max_size=4)),
        st.builds(
            lambda n, v: Action("", (ToolCall("c", n, v),)),
            st.sampled_from(["Edit", "X"]),
            st.text(max_size=5),
        ),
    ),
    max_size=3,
).map(lambda actions: both(*actions))
SHOWN = environment_at(state_after((act("Read", file_path="/repo/a.py"), NUMBERED)), ())


@settings(max_examples=300, deadline=None)
@given(st.lists(ACTIONS, min_size=2, max_size=5))
def test_each_rung_implies_the_next_and_the_dead_zone_is_symmetric(actions: list[Action]) -> None:
    known = [ladder_keys(action, SHOWN) for action in actions]
    for one in known:
        for other in known:
            levels = [
                getattr(one, r) == getattr(other, r)
                for r in ("exact", "canonical", "effect", "intent", "action_class")
            ]
            assert levels == sorted(levels), (one, other)
            assert in_ladder_dead_zone(one, other) == in_ladder_dead_zone(other, one)


@settings(max_examples=200, deadline=None)
@given(ACTIONS)
def test_keys_are_the_same_again(action: Action) -> None:
    assert ladder_keys(action, SHOWN) == ladder_keys(action, SHOWN)


def _java(folder: Path) -> Iterator[tuple[Action, EnvironmentState]]:
    with gzip.open(folder / "msb_swe_agent_full_trajs.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            messages = [Message("user", row["task"])]
            for number, step in enumerate(row["steps"]):
                command = (step["call"] or {}).get("arguments", {}).get("command")
                made = parse_swe_agent_command(str(command)) if command is not None else None
                calls = (ToolCall(f"c{number}", made.name, made.arguments),) if made else ()
                messages.append(Message("assistant", step["thought"] or "", calls))
                messages.append(Message("tool", step["observation"] or "", tool_call_id=f"c{number}"))
            record = replay_context(Context(0, tuple(messages), ()), "swe_agent")
            for cut in range(1, len(messages), 2):
                yield Action.of(messages[cut]), EnvironmentState("swe_agent", "/repo", (), record, cut)


def _sessions(folder: Path) -> Iterator[tuple[Action, EnvironmentState]]:
    for source in discover([folder]):
        if source.dialect is None:
            continue
        for trace in ingest_source(source)[0]:
            records = {each.index: replay_context(each, trace.harness) for each in trace.contexts}
            for state in trace.states():
                yield state.student_action, environment_at(state, (), records[state.context.index])


def _check_laws(found: Iterator[tuple[Action, EnvironmentState]]) -> int:
    implied: dict[tuple[Any, ...], str] = {}
    count = 0
    for action, world in found:
        ladder_keys(action, world)
        known = ladder_keys(action, EnvironmentState(world.harness, "/repo"))
        levels = [known.exact, known.canonical, known.effect, known.intent, known.action_class]
        for place, key in enumerate(levels[:-1]):
            at = (world.harness, place, key)
            assert implied.setdefault(at, levels[place + 1]) == levels[place + 1]
        count += 1
    return count


if TABLES:

    def test_no_action_of_the_java_runs_fails() -> None:
        assert _check_laws(_java(Path(str(TABLES)))) == 9514


if REAL:

    def test_no_action_of_real_sessions_fails() -> None:
        assert _check_laws(_sessions(Path(str(REAL)))) > 2500
