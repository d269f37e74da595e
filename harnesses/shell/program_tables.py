"""Tables of programs and what they do on a command line."""

import re

from tracemill.harnesses.core.vocabulary import Operation

_NAMES = {
    Operation.READ: """cat head tail nl less more bat awk gawk wc file od xxd hexdump jq yq strings diff
        cmp column cut open goto scroll_up scroll_down filemap""",
    Operation.SEARCH: """grep egrep fgrep zgrep rg ag ack find fd locate which whereis type ast-grep
        search_dir search_file find_file""",
    Operation.LIST: "ls stat tree pwd du df lsd exa eza dir realpath readlink basename dirname",
    Operation.EDIT: """patch apply_patch ed mv rm rmdir unlink truncate rename chmod chown goimports edit
        insert str_replace""",
    Operation.CREATE: "tee touch mkdir cp ln install mktemp create",
    Operation.RUN_TEST: """pytest py.test tox nox jest vitest mocha rspec ctest phpunit nosetests nose2 karma
        ava gotestsum unittest""",
    Operation.WEB: "curl wget lynx",
    Operation.VCS: "git gh hg svn jj glab",
    Operation.FINISH: "submit exit_forfeit",
}
PROGRAMS = {name: operation for operation, names in _NAMES.items() for name in names.split()}
"""Program → operation, where the name decides; includes the commands of SWE-agent."""

SUBMIT_COMMANDS = (("echo", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"), ("echo", "MINI_SWE_AGENT_FINAL_OUTPUT"))
"""First words of a command line that ends a run of mini-swe-agent."""

FORFEIT = "forfeit"
"""Target of a FINISH that gives the task up."""

ANNOUNCED = "announced"
"""Target of a FINISH whose text announces a next act."""

REFUSED = "refused"
"""Target of a FINISH whose text refuses the task."""

TEXT_TARGETS = frozenset({ANNOUNCED, REFUSED})
"""Targets of a FINISH that is a text."""

_SETUP_NAMES = """cd pushd popd echo printf export set source . true : sleep test [ [[ for case unset wait
    alias ulimit mkdir false local"""
SETUP_PROGRAMS = frozenset(_SETUP_NAMES.split())
"""Programs that only prepare for other commands of a line."""

WRAPPERS = {"sudo": 0, "time": 0, "nohup": 0, "env": 0, "nice": 0, "command": 0, "timeout": 1, "xargs": 0}
"""Programs that run another one, and how many operands of their own they take."""

RUNNERS = {
    "poetry": ("run",),
    "uv": ("run",),
    "pipenv": ("run",),
    "hatch": ("run",),
    "pdm": ("run",),
    "bundle": ("exec",),
    "mise": ("exec",),
    "npx": (),
    "bunx": (),
    "pnpm": ("exec",),
    "yarn": ("exec",),
    "conda": ("run",),
}
"""Programs that run another one in an environment, and the subcommand that does so."""

_TEST_DRIVERS = """go cargo npm pnpm yarn mix dotnet make gradle gradlew mvn mvnw mise just bazel deno bun
    swift sbt rake zig lerna nx task"""
TEST_DRIVERS = frozenset(_TEST_DRIVERS.split())
"""Programs that run tests where one of their operands names tests."""

TEST_WORD = re.compile(r"^(?:test|tests|check|verify|nextest|t|spec)(?:$|[:_.-])|[:_-]tests?$", re.IGNORECASE)
TEST_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test|runtests|run_tests?)\.(?:py|sh|js|ts|rb)$|(?:^|/)tests?/[^/]*\.py$"
)

_GIT_READS = """status diff log show rev-parse ls-files ls-tree blame cat-file describe rev-list shortlog
    reflog merge-base for-each-ref ls-remote show-ref diff-tree diff-index var count-objects name-rev"""
GIT_READS = frozenset(_GIT_READS.split())
"""Subcommands of git that change nothing."""

INTERPRETERS = re.compile(r"^(?:python[\d.]*|node|ruby|perl|bash|sh|zsh|php|deno|bun|tsx|ts-node)$")
