"""Command lines: how they are cut, and what they are taken to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracemill.harnesses.shell.operations import find_command_operation, unwrap_operation_command
from tracemill.harnesses.shell.parse_line import SimpleCommand, parse_command


def test_a_line_is_cut_at_its_operators_and_loses_its_quotes() -> None:
    commands = parse_command("cd /repo && grep -rn \"a|b\" 'my dir' 2>&1 | head -5")
    assert commands == (
        SimpleCommand(("cd", "/repo")),
        SimpleCommand(("grep", "-rn", "a|b", "my dir"), "&&", redirects=(("2>&", "1"),)),
        SimpleCommand(("head", "-5"), "|"),
    )


def test_a_here_document_is_taken_out_whatever_it_holds() -> None:
    commands = parse_command("cat > a.py <<'EOF'\nprint(\"it's\") && (\nEOF\npython a.py")
    assert commands == (
        SimpleCommand(("cat",), redirects=((">", "a.py"),), heredoc='print("it\'s") && (\n'),
        SimpleCommand(("python", "a.py"), ";"),
    )


def test_a_commit_message_from_a_here_document_stays_one_word() -> None:
    commands = parse_command('git commit -m "$(cat <<\'EOF\'\nfix (a\n"b\nEOF\n)" && git push')
    assert commands is not None
    assert [command.argv[:2] for command in commands] == [("git", "commit"), ("git", "push")]
    assert 'fix (a\n"b' in commands[0].argv[3]


def test_a_here_document_keeps_its_first_blanks_and_what_stands_before_and_behind_it() -> None:
    commands = parse_command("git commit -F - <<'EOF' && git push\n\n  x\nEOF\n# done\nls")
    assert commands == (
        SimpleCommand(("git", "commit", "-F", "-"), heredoc="\n  x\n"),
        SimpleCommand(("git", "push"), "&&"),
        SimpleCommand(("ls",), ";"),
    )


def test_lines_of_a_loop_are_commands() -> None:
    commands = parse_command("for f in *.py; do\n  cat $f\n  wc -l $f\ndone")
    assert commands is not None
    assert [(each.joiner, each.keywords, each.argv[:1]) for each in commands] == [
        ("", (), ("for",)),
        (";", ("do",), ("cat",)),
        (";", (), ("wc",)),
        (";", ("done",), ()),
    ]


def test_a_line_nested_too_deeply_is_not_read() -> None:
    assert parse_command("{ " * 2000 + "a;" + " }" * 2000) is None


@pytest.mark.parametrize("line", ["echo 'open", 'echo "open', "cat <(ls) > >", "a >", "a\x00b"])
def test_what_cannot_be_read_gives_none(line: str) -> None:
    assert parse_command(line) is None


@given(st.text(alphabet="abc '\"\\$()|&;<>\n`#*=-/.EOF", max_size=60))
def test_no_line_raises_or_hangs(line: str) -> None:
    parse_command(line)
    find_command_operation(line)


@pytest.mark.parametrize(
    ("line", "operation", "target", "mutating"),
    [
        ("cat src/a.py", "read", "src/a.py", False),
        ("cd src && sed -n '1,20p' lib/c.py", "read", "src/lib/c.py", False),
        ("head -n 20 a.py", "read", "a.py", False),
        ("cd /r; grep -rn foo src | head", "search", "foo", False),
        ("find . -name '*.py'", "search", "*.py", False),
        ("rg -n 'def f' lib", "search", "def f", False),
        ("ls -la", "list", ".", False),
        ("pwd && ls", "list", ".", False),
        ("sed -i 's/a/b/' f.py", "edit", "f.py", True),
        ("find . -name x | xargs sed -i s/a/b/", "edit", None, True),
        ("git apply fix.patch", "edit", "fix.patch", True),
        ("echo hi >> notes.txt", "edit", "notes.txt", True),
        ("cat > f.py <<EOF\nx = 1\nEOF", "create", "f.py", True),
        ("cd /r && python -m pytest -x", "run_test", "pytest", True),
        ("poetry run pytest tests/test_a.py", "run_test", "pytest tests/test_a.py", True),
        ("go test ./... 2>&1 | tail -5", "run_test", "go test ./...", True),
        ("rm -rf /tmp/a && go test ./x", "run_test", "go test ./x", True),
        ("npm run test:unit", "run_test", "npm run test:unit", True),
        ("cargo test foo", "run_test", "cargo test foo", True),
        ("python tests/runtests.py forms", "run_test", "python tests/runtests.py forms", True),
        ("./run_tests.sh --fast", "run_test", "run_tests.sh", True),
        ("npm run build", "run", "npm run build", True),
        ("timeout 60 python reproduce.py", "run", "python reproduce.py", True),
        ("python -c 'import x'", "run", "python -c", True),
        ("git -C /a log --oneline", "vcs", "git log", False),
        ("git commit -m 'x'", "vcs", "git commit", True),
        ("git branch --show-current", "vcs", "git branch", False),
        ("curl -s https://example.org", "web", "https://example.org", False),
        ("open lib/b.py 10", "read", "lib/b.py", False),
        ("search_dir foo src", "search", "foo", False),
        ("edit 3:4\n  foo(\nend_of_edit", "edit", None, True),
        ("submit", "finish", None, True),
    ],
)
def test_what_a_line_does(line: str, operation: str, target: str | None, mutating: bool) -> None:
    effect = find_command_operation(line)
    assert (effect.operation, effect.target, effect.mutating) == (operation, target, mutating)


def test_wrappers_come_off() -> None:
    assert unwrap_operation_command(
        ("sudo", "timeout", "60", "poetry", "run", "python", "-m", "pytest", "-q")
    ) == (
        "pytest",
        "-q",
    )
    assert unwrap_operation_command(("sudo",)) == ("sudo",)


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("cat src/<HOST_3f2ac91d>/a.py", ("cat", "src/HOST_3f2ac91d/a.py")),
        ("curl -u <BASIC_AUTH_3f2ac91d>", ("curl", "-u", "BASIC_AUTH_3f2ac91d")),
        ("wc -l <data.csv", ("wc", "-l")),
    ],
)
def test_what_redaction_left_is_a_word_and_no_redirect(line: str, argv: tuple[str, ...]) -> None:
    commands = parse_command(line)
    assert commands is not None
    assert [command.argv for command in commands] == [argv]
