"""What models cost and stood for when they were last looked up, kept on disk with the date.

A run reads the catalogue afresh before it spends anything, and says what changed since; an estimate
without network takes what is kept here.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from records.errors import WorkspaceError
from records.files import read_json_file, write_json
from teachers.model_card import ModelCard, card_of_endpoints, differences, kept

PRICES = "prices.json"
PRICES_SCHEMA = 1
FRESH_S = 600.0


def _nothing(line: str) -> None:
    return None


@dataclass(slots=True)
class PriceBook:
    """The models of one workspace by server and id. Without a `path` it lives as long as the process.

    `say` is handed a line for every model whose price or snapshot is another than the one kept, before
    any call; `changes` has them all.
    """

    path: Path | None = None
    say: Callable[[str], None] = _nothing
    changes: list[str] = field(default_factory=list)
    _pages: dict[str, dict[str, Any]] | None = None
    _recent: dict[object, tuple[float, Any]] = field(
        default_factory=dict[object, tuple[float, Any]],
        repr=False,  # its keys hold API keys
    )

    def recent(self, what: object) -> Any:
        """What this process read of a server within `FRESH_S`, None where it did not: a run of many shards
        reads each page once in a while and not once a shard."""
        read_at, value = self._recent.get(what, (-FRESH_S, None))
        return value if time.monotonic() - read_at < FRESH_S else None

    def just_read(self, what: object, value: Any) -> None:
        """Keeps what was just read, in memory alone."""
        self._recent[what] = (time.monotonic(), value)

    def _read(self) -> dict[str, dict[str, Any]]:
        """What is on disk; nothing where the file is of another schema or broken: it can be read anew."""
        if self._pages is None:
            self._pages = {}
            if self.path is not None and self.path.exists():
                try:
                    value = read_json_file(self.path)
                except WorkspaceError:
                    value = None
                if isinstance(value, dict) and value.get("schema") == PRICES_SCHEMA:
                    pages = dict(value.get("models") or {})
                    self._pages = {key: page for key, page in pages.items() if isinstance(page, dict)}
        return self._pages

    def card(self, server: str, model: str, provider: str | None) -> tuple[ModelCard, str] | None:
        """The card kept of a model at a server, and the day it was read (UTC); None where there is none."""
        page = self._read().get(_key(server, model))
        if page is None:
            return None
        try:
            card = card_of_endpoints(page["entry"], page["endpoints"], provider)
        except (KeyError, TypeError, ValueError):
            return None
        return None if card is None else (card, str(page["read_at"])[:10])

    def remember(
        self, server: str, model: str, entry: Mapping[str, Any], endpoints: Sequence[Mapping[str, Any]]
    ) -> None:
        """Keep what a catalogue says now, and say what it said otherwise before."""
        pages, key = self._read(), _key(server, model)
        now = {"entry": kept(entry), "endpoints": [kept(each) for each in endpoints]}
        before = pages.get(key)
        if before is not None:
            for what in _changes(before, now):
                line = f"{model}: {what} since {str(before.get('read_at'))[:10]}"
                self.changes.append(line)
                self.say(line)
        pages[key] = now | {"read_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        if self.path is not None:
            write_json(self.path, {"schema": PRICES_SCHEMA, "models": pages})


def _key(server: str, model: str) -> str:
    return f"{server} {model}"


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is dearer, cheaper or another model than before: of the model's own page, and of each provider
    that was there before."""
    found = differences(before.get("entry") or {}, now["entry"])
    if found:
        return found
    old = {each.get("tag"): each for each in before.get("endpoints") or ()}
    return [
        f"{what} at {each['tag']}"
        for each in now["endpoints"]
        if each.get("tag") in old
        for what in differences(old[each["tag"]], each)
    ]
