"""Cut command lines into tokens by the grammar of bash (tree-sitter-bash, MIT)."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_MAX_BYTES = 20_000
_WORDS = """word string raw_string ansi_c_string translated_string concatenation simple_expansion expansion
    command_substitution arithmetic_expansion process_substitution number variable_name variable_assignment
    special_variable_name regex extglob_pattern brace_expression array test_operator command_name"""
_WHOLE = frozenset(_WORDS.split())
"""Nodes that are one word, whatever they hold."""
_STATEMENTS = """command redirected_statement pipeline list for_statement c_style_for_statement if_statement
    while_statement case_statement subshell compound_statement negated_command declaration_command
    variable_assignment variable_assignments test_command function_definition unset_command"""
_ENDED_BY_LINE = frozenset(_STATEMENTS.split())
_OPERATORS = frozenset({"&&", "||", ";;", "|&", "|", ";", "&", "\n", "(", ")"})
_REDIRECTS = frozenset({">", ">>", "<", "<<<", ">&", "<&", ">|", "<>", "&>", "&>>"})
_DOCUMENT = frozenset({"<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"})
_TABS = re.compile(r"(?m)^\t+")
Token = tuple[Literal["word", "operator", "redirect", "document"], str]
"""Kind and text; the text of a here-document has a first line more, empty where its tag is quoted."""


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def bash_tokens(line: str) -> list[Token] | None:
    """Return the words, operators, redirects and here-documents of a line, without comments and blanks.

    Return None if the grammar does not parse all of it, or it is longer than 20 kB or nested too deeply.
    """
    source = line.encode("utf-8", "surrogatepass")
    if len(source) > _MAX_BYTES or b"\0" in source:
        return None
    root = _parser().parse(source).root_node
    try:
        return None if root.has_error else list(_tokens(root))
    except RecursionError:
        return None


def _tokens(node: "Node") -> Iterator[Token]:
    kind = node.type
    if kind in _WHOLE:
        yield "word", _text(node)
    elif kind == "heredoc_redirect":
        yield from _document(node)
    elif not node.child_count:
        if kind in _OPERATORS:
            yield "operator", ";" if kind == "\n" else kind
        elif text := _text(node).strip():
            yield "word", text
    elif kind == "file_redirect" or kind == "herestring_redirect":
        yield from _redirect(node)
    else:
        before, ended = None, True
        for child in node.children:
            if child.type == "comment":
                continue
            if before is not None and before.type in _ENDED_BY_LINE and not ended and _below(before, child):
                yield "operator", ";"
            if (
                before is not None
                and kind == "redirected_statement"
                and _between(node, before, child) == b"-"
            ):
                yield "word", "-"  # which the grammar leaves out before a here-document
            for token in _tokens(child):
                ended = token[0] == "operator"
                yield token
            before = child


def _below(before: "Node", node: "Node") -> bool:
    """Return whether a node begins on a later line than the one before it ends on."""
    return before.end_point.row + (before.end_point.column > 0) <= node.start_point.row


def _between(node: "Node", before: "Node", child: "Node") -> bytes:
    """Return the text of a node between two of its children."""
    start = node.start_byte
    return (node.text or b"")[before.end_byte - start : child.start_byte - start].strip()


def _redirect(node: "Node") -> Iterator[Token]:
    number = ""
    for child in node.children:
        if child.type == "file_descriptor":
            number = _text(child)
        elif child.type in _REDIRECTS:
            yield "redirect", number + child.type
        else:
            yield from _tokens(child)


def _document(node: "Node") -> Iterator[Token]:
    """Yield a here-document, then the tokens after its tag."""
    parts = {child.type: child for child in node.children}
    body = _body(node, parts["heredoc_body"]) if "heredoc_body" in parts else ""
    body = _TABS.sub("", body) if "<<-" in parts else body
    expanded = _text(parts["heredoc_start"])[:1] not in ("'", '"', "\\")
    yield "document", f"{'expanded' if expanded else ''}\n{body}"
    for child in node.children:
        if child.type not in _DOCUMENT:
            yield from _tokens(child)


def _body(node: "Node", body: "Node") -> str:
    """Return the text of a here-document with its leading blanks, which its node leaves out."""
    before = (node.text or b"")[: body.start_byte - node.start_byte]
    blanks = before[len(before.rstrip()) :].partition(b"\n")[2]
    return blanks.decode() + _text(body)


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "surrogatepass")
