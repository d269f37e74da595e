"""Token counts of messages and tools, by the tokenizer of the trained model or estimated."""

import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.records.errors import NormalizeError
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolSpec

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTES_A_10_TOKENS = 33
"""A token of code, logs and prose has 3.3 to 4.2 bytes in vocabularies of 100,000 to 250,000 entries. The
lower end overestimates tokens, so that a trainer truncates no row."""
MESSAGE_TOKENS = 5
"""Tokens that a chat template adds to a message: its role and two special tokens, with line ends."""
CALL_TOKENS = 12
"""Tokens that a chat template adds to a call."""

Count = Callable[[Sequence[str]], list[int]]
"""Returns the number of tokens of each text."""

_BATCH_CHARS = 1_000_000
_CACHED_TEXTS = 200_000


def estimate_token_count(text: str) -> int:
    """Estimate the tokens of a text from its UTF-8 bytes."""
    return -(-len(text.encode("utf-8", "surrogatepass")) * 10 // BYTES_A_10_TOKENS)


def estimate_token_counts(texts: Sequence[str]) -> list[int]:
    """Estimate the tokens of each text."""
    return list(map(estimate_token_count, texts))


def make_token_counter(tokenizer: Path | None) -> Count:
    """Return a counter for a `tokenizer.json` or its folder; the estimate if None.

    Raises NormalizeError if the file cannot be read or `tokenizers` is not installed.
    """
    if tokenizer is None:
        return estimate_token_counts
    expected = "a tokenizer.json of the model that is trained, or its folder"
    path = tokenizer / "tokenizer.json" if tokenizer.is_dir() else tokenizer
    if not path.is_file():
        raise NormalizeError(f"tokenizer {path} does not exist", expected, "see release.tokenizer")
    if importlib.util.find_spec("tokenizers") is None:
        raise NormalizeError("tokenizers is not installed", do="install it, or leave release.tokenizer out")
    from tokenizers import Tokenizer

    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no class of its own
        raise NormalizeError(f"tokenizer {path} cannot be read", expected, "see release.tokenizer") from error
    return TokenizerCounts(loaded).counts


class TokenizerCounts:
    """Counts by a tokenizer, with a cache by digest: sessions share messages and results."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        self._cache: dict[bytes, int] = {}

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        data = [text.encode("utf-8", "replace") for text in texts]
        keys = [hashlib.blake2b(each, digest_size=16).digest() for each in data]
        if len(self._cache) > _CACHED_TEXTS:
            self._cache.clear()
        new = {key: each for key, each in zip(keys, data, strict=True) if key not in self._cache}
        for batch in _batches(new):
            encodings = self._tokenizer.encode_batch_fast(
                [new[key].decode() for key in batch], add_special_tokens=False
            )
            self._cache |= {key: len(each) for key, each in zip(batch, encodings, strict=True)}
        return [self._cache[key] for key in keys]


def _batches(data: Mapping[bytes, bytes]) -> Iterator[list[bytes]]:
    """Yield keys of texts in batches of at most `_BATCH_CHARS` bytes, as their encodings are held at once."""
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
    """Return the tokens of each message in a chat template."""
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
    """Return the tokens of the JSON schemas of tools."""
    return sum(count([canonical_json(tool.to_wire()) for tool in tools]))
