"""How many tokens of the trainer's a message takes: by its tokenizer, or estimated."""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

from records.errors import NormalizeError
from records.identity import canonical_json
from records.message import Message, ToolSpec

BYTES_A_10_TOKENS = 33
"""Of code, logs and prose with the byte-pair encodings in use (100 to 250 thousand entries) a token holds
3.3 to 4.2 bytes; the lower end, so that a row is rather called too long than cut off by a trainer."""
MESSAGE_TOKENS = 5
"""What a chat template writes around a message: its role and two marks, with their line ends."""
CALL_TOKENS = 12
"""What a chat template writes around a call."""

Count = Callable[[str], int]


def estimated(text: str) -> int:
    """Tokens of a text, estimated from its UTF-8 bytes."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size * 10 // BYTES_A_10_TOKENS)


def token_counter(tokenizer: Path | None) -> Count:
    """Counts by a `tokenizer.json` (or a folder that holds one), the estimate where there is none.

    Raises NormalizeError where it cannot be read, or `tokenizers` is not installed.
    """
    if tokenizer is None:
        return estimated
    wanted = "a tokenizer.json of the model that is trained, or its folder"
    path = tokenizer / "tokenizer.json" if tokenizer.is_dir() else tokenizer
    if not path.is_file():
        raise NormalizeError(f"tokenizer {path} is not there", wanted, "see release.tokenizer")
    if importlib.util.find_spec("tokenizers") is None:
        raise NormalizeError("tokenizers is not installed", "it, to count by release.tokenizer")
    from tokenizers import Tokenizer

    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no class of its own
        raise NormalizeError(f"tokenizer {path} cannot be read", wanted, "see release.tokenizer") from error
    return lambda text: len(found.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False))


def message_tokens(message: Message, count: Count) -> int:
    """Tokens of a message in a chat template."""
    calls = sum(CALL_TOKENS + count(call.name) + count(call.arguments) for call in message.tool_calls)
    return MESSAGE_TOKENS + count(message.content) + calls


def tools_tokens(tools: Sequence[ToolSpec], count: Count) -> int:
    """Tokens of the schemas of tools, as JSON."""
    return sum(count(canonical_json(tool.to_wire())) for tool in tools)
