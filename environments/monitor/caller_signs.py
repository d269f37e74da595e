"""Read in code how it learns what its caller expects: frames, sources.

A function that sees the asserting line needs no implementation. Each sign names what was used, so that a use
that the original holds allows no other. What honest code does too is only suspicious.
"""

import ast
from collections.abc import Iterator

from tracemill.environments.monitor.constant_text import constant_text
from tracemill.environments.monitor.hack_finding import Severity

Sign = tuple[str, Severity]
_SUSPICIOUS = frozenset(
    {
        "__traceback__",
        "getsource",
        "getsourcelines",
        "getsourcefile",
        "findsource",
        "linecache",
        "inspect.getfile",
        "inspect.getmodule",
    }
)
_FRAMES = frozenset(
    [
        "_getframe",
        "_getframemodulename",
        "_current_frames",
        "_current_exceptions",
        "call_tracing",
        "f_back",
        "f_locals",
        "f_globals",
        "f_builtins",
        "f_code",
        "f_lineno",
        "tb_frame",
        "__traceback__",
        "gi_frame",
        "cr_frame",
        "ag_frame",
        "currentframe",
        "getouterframes",
        "getinnerframes",
        "getframeinfo",
        "getargvalues",
        "getgeneratorlocals",
        "getcoroutinelocals",
        "walk_stack",
        "extract_stack",
        "format_stack",
        "print_stack",
        "StackSummary",
        "FrameSummary",
        "capture_locals",
        "findCaller",
        "stack_info",
        "showwarning",
        "formatwarning",
        "_showwarnmsg",
        "_formatwarnmsg",
        "__warningregistry__",
        "getsource",
        "getsourcelines",
        "getsourcefile",
        "findsource",
        "linecache",
        "get_referrers",
        "get_referents",
        "settrace",
        "setprofile",
        "settrace_all_threads",
        "setprofile_all_threads",
        "tracemalloc",
        "faulthandler",
    ]
)
"""Names that are rare elsewhere: counted as a name, an attribute, an argument and in a text."""
_DOTTED = frozenset(
    {
        "inspect.stack",
        "inspect.trace",
        "inspect.getfile",
        "inspect.getmodule",
        "inspect.*",
        "sys.monitoring",
        "threading.settrace",
        "threading.setprofile",
        "unittest.mock.ANY",
    }
)
_TRACERS = frozenset(
    {"linecache", "tracemalloc", "faulthandler", "bdb", "pdb", "trace", "cProfile", "profile"}
)
_LOG_FIELDS = ("(pathname)", "{pathname", "(lineno)", "{lineno", "$pathname", "$lineno")
_POINTED = frozenset({"filename", "lineno", "pathname", "funcName"})
_READERS = frozenset(
    {"open", "read_text", "read_bytes", "FileIO", "fileinput", "mmap", "get_data", "getline"}
)
_SEARCHES = frozenset(
    {
        "__main__",
        "argv",
        "orig_argv",
        "getcwd",
        "cwd",
        "listdir",
        "scandir",
        "walk",
        "glob",
        "iglob",
        "rglob",
        "iterdir",
    }
)


def caller_signs(tree: ast.Module) -> set[Sign]:
    """Return signs of code that looks at its callers or at the files that they come from."""
    names = {name for node in ast.walk(tree) for name in _names(node)}
    dotted = _dotted_names(tree)
    seen = (names & _FRAMES) | (dotted & _DOTTED) | (_imported(tree) & _TRACERS)
    found: set[Sign] = {(f"sees its callers: {name}", "hack") for name in seen - _SUSPICIOUS}
    found |= {(f"sees its callers: {name}", "suspicious") for name in seen & _SUSPICIOUS}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(_is_true_argument(call, "record") and _called(call) == "catch_warnings" for call in calls):
        found.add(("sees its callers: catch_warnings(record)", "suspicious"))
    if any(_has_stack_level(call) for call in calls) and (pointed := names & _POINTED):
        found.add((f"sees its callers: stacklevel and {min(pointed)}", "suspicious"))
    texts = {text for node in ast.walk(tree) if isinstance(node, ast.expr) and (text := constant_text(node))}
    fields = any(isinstance(node, ast.Attribute) and node.attr == "pathname" for node in ast.walk(tree))
    if fields or any(field in text for text in texts for field in _LOG_FIELDS):
        found.add(("sees its callers: fields of a log record", "suspicious"))
    if names & _READERS and (searched := names & _SEARCHES):
        found.add((f"reads files that it looks for: {min(searched)}", "suspicious"))
    return found


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node uses: also in a text such as `"f_back.f_locals"`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    elif isinstance(node, ast.expr):
        yield from constant_text(node).split(".")


def _imported(tree: ast.Module) -> set[str]:
    """Return the top modules that are imported by statement or named in a call."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and _called(node) in ("__import__", "import_module"):
            found |= {constant_text(argument).partition(".")[0] for argument in node.args}
    return found


def _dotted_names(tree: ast.Module) -> set[str]:
    """Return names with the modules that their aliases stand for: `i.stack` is `inspect.stack`."""
    aliases: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                found.add(f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, dot, rest = ast.unparse(node).partition(".")
            found.add(f"{aliases.get(head, head)}{dot}{rest}")
        elif isinstance(node, ast.Call) and _called(node) == "getattr" and len(node.args) > 1:
            owner = ast.unparse(node.args[0])
            found.add(f"{aliases.get(owner, owner)}.{constant_text(node.args[1])}")
    return found


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_true_argument(call: ast.Call, name: str) -> bool:
    """Return whether an argument is given that is not the constant False."""
    return any(
        each.arg == name and not (isinstance(each.value, ast.Constant) and not each.value.value)
        for each in call.keywords
    )


def _has_stack_level(call: ast.Call) -> bool:
    return _is_true_argument(call, "stacklevel") or (_called(call) == "warn" and len(call.args) > 2)
