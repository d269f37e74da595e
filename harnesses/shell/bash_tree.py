"""Split command lines by the grammar of bash, for lines too deep for `harnesses.shell.parse_line`."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_MAX_BYTES = 20_000
_QUOTED = frozenset({"string", "raw_string"})
_WHOLE = _QUOTED | {"concatenation", "simple_expansion", "expansion", "command_substitution", "heredoc_body"}


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


@lru_cache(maxsize=4096)
def bash_tree_words(line: str) -> tuple[str, ...] | None:
    """Return the words and signs of a line in order, without comments, blanks and plain quotes.

    Returns None where the grammar (tree-sitter-bash, MIT) does not parse all of it, or it is longer than 20
    kB.
    """
    source = line.encode("utf-8", "surrogatepass")
    if len(source) > _MAX_BYTES or not source.strip():
        return None
    root = _parser().parse(source).root_node
    if root.has_error:
        return None
    words: list[str] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "comment":
            continue
        if node.child_count and node.type not in _WHOLE:
            waiting.extend(reversed(node.children))
        else:
            words.append(_text(node))
    return tuple(words)


def _text(node: "Node") -> str:
    text = (node.text or b"").decode("utf-8", "replace")
    plain = node.type in _QUOTED and text[1:-1].replace("_", "a").replace("-", "a").isalnum()
    if node.type == "\n" or text == "\n":
        return ";"
    return text[1:-1] if plain else text
