"""How many tokens of the trainer's a message takes: by its tokenizer, or estimated."""

import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.records.errors import NormalizeError
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolSpec

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTES_A_10_TOKENS = 33
"""Of code, logs and prose with the byte-pair encodings in use (100 to 250 thousand entries) a token holds
3.3 to 4.2 bytes; the lower end, so that a row is rather called too long than cut off by a trainer."""
MESSAGE_TOKENS = 5
"""What a chat template writes around a message: its role and two marks, with their line ends."""
CALL_TOKENS = 12
"""What a chat template writes around a call."""

Count = Callable[[Sequence[str]], list[int]]
"""Tokens of each of some texts."""

_BATCH_CHARS = 1_000_000
_REMEMBERED = 200_000


def estimate_token_count(text: str) -> int:
    """Tokens of a text, estimated from its UTF-8 bytes."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size * 10 // BYTES_A_10_TOKENS)


def estimate_token_counts(texts: Sequence[str]) -> list[int]:
    """`estimate_token_count` of each text."""
    return list(map(estimate_token_count, texts))


def make_token_counter(tokenizer: Path | None) -> Count:
    """Counts by a `tokenizer.json` (or a folder that holds one), the estimate where there is none.

    Raises NormalizeError where it cannot be read, or `tokenizers` is not installed.
    """
    if tokenizer is None:
        return estimate_token_counts
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
    return Tokenized(found).counts


class Tokenized:
    """Counts by a tokenizer. A text that was counted is known again by its digest as long as it is among the
    last 200,000: sessions share messages, and tools give the same answer twice."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        self._known: dict[bytes, int] = {}

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; those that are new are counted together."""
        data = [text.encode("utf-8", "replace") for text in texts]
        keys = [hashlib.blake2b(each, digest_size=16).digest() for each in data]
        new = {key: each for key, each in zip(keys, data, strict=True) if key not in self._known}
        counted = {key: self._known[key] for key in keys if key not in new}
        for some in _batches(new):
            read = self._tokenizer.encode_batch_fast(
                [new[key].decode() for key in some], add_special_tokens=False
            )
            counted |= {key: len(each) for key, each in zip(some, read, strict=True)}
        self._remember({key: counted[key] for key in new})
        return [counted[key] for key in keys]

    def _remember(self, counted: dict[bytes, int]) -> None:
        self._known |= counted
        for key in list(islice(self._known, max(0, len(self._known) - _REMEMBERED))):
            del self._known[key]


def _batches(data: Mapping[bytes, bytes]) -> Iterator[list[bytes]]:
    """Keys of texts that are not too long together: what is read of them is held at once."""
    batch: list[bytes] = []
    size = 0
    for key, each in data.items():
        if batch and size + len(each) > _BATCH_CHARS:
            yield batch
            batch, size = [], 0
        batch.append(key)
        size += len(each)
    if batch:
        yield batch


def count_message_tokens(messages: Sequence[Message], count: Count) -> list[int]:
    """Tokens of each message in a chat template."""
    texts: list[str] = []
    for message in messages:
        texts.append(message.content)
        for call in message.tool_calls:
            texts += (call.name, call.arguments)
    counts = iter(count(texts))
    return [
        MESSAGE_TOKENS
        + next(counts)
        + sum(CALL_TOKENS + next(counts) + next(counts) for _ in message.tool_calls)
        for message in messages
    ]


def count_tool_tokens(tools: Sequence[ToolSpec], count: Count) -> int:
    """Tokens of the schemas of tools, as JSON."""
    return sum(count([canonical_json(tool.to_wire()) for tool in tools]))
