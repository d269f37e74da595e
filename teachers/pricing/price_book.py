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

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.teachers.core.bundled_prices import OFFLINE_DAY, OFFLINE_PRICES
from tracemill.teachers.core.price import MILLION
from tracemill.teachers.pricing.model_info import (
    ModelCard,
    diff_model_info,
    fields_to_keep_of_model_info,
    read_model_info_of_endpoints,
)

PRICES = "prices.json"
PRICES_SCHEMA = 1
FRESH_S = 600.0
TABLE = f"the table of {OFFLINE_DAY}"


def _nothing(line: str) -> None:
    return None


@dataclass(slots=True)
class PriceBook:
    """The models of one workspace by server and id. Without a `path` it lives as long as the process.

    `say` is handed a line for every model whose price or snapshot is another than planned, before any call;
    `changes` has them all. Planned is what `planned` has of a model, by server and id; else what was kept;
    else the table that ships. `read_now` has the models, by server and id, whose prices it read itself.
    """

    path: Path | None = None
    say: Callable[[str], None] = _nothing
    changes: list[str] = field(default_factory=list)
    planned: Mapping[tuple[str, str], Mapping[str, Any]] = field(
        default_factory=dict[tuple[str, str], Mapping[str, Any]]
    )
    read_now: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _pages: dict[str, dict[str, Any]] | None = None
    _charged: dict[str, float] = field(default_factory=dict[str, float])
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

    def charged(self, server: str, model: str, times: float) -> None:
        """Take note that a call cost so many times what its tokens come to at the list's price."""
        key = _key(server, model)
        if times <= self.times_charged(server, model):
            return
        if key not in self._charged:
            price = f"charges {times:.2f} times its price list"
            line = f"{model}: {price}; calls are reserved at that from now on"
            self.changes.append(line)
            self.say(line)
        self._charged[key] = times

    def times_charged(self, server: str, model: str) -> float:
        """Return how many times its list's price a model has charged at most; 1 where it kept to it."""
        return self._charged.get(_key(server, model), 1.0)

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
            card = read_model_info_of_endpoints(page["entry"], page["endpoints"], provider)
        except (KeyError, TypeError, ValueError):
            return None
        return None if card is None else (card, str(page["read_at"])[:10])

    def page(self, server: str, model: str) -> dict[str, Any] | None:
        """What is kept of a model: `entry`, `endpoints` and `read_at`; None where nothing is."""
        return self._read().get(_key(server, model))

    def remember(
        self, server: str, model: str, entry: Mapping[str, Any], endpoints: Sequence[Mapping[str, Any]]
    ) -> None:
        """Keep what a catalogue says now, and say what it said otherwise before."""
        pages, key = self._read(), _key(server, model)
        now = {
            "entry": fields_to_keep_of_model_info(entry),
            "endpoints": [fields_to_keep_of_model_info(each) for each in endpoints],
        }
        before = pages.get(key) or _table_page(model)
        if (server, model) not in self.read_now:
            self.read_now.add((server, model))
            before = self.planned.get((server, model)) or before
        if before is not None and (changed := _changes(before, now)):
            since = before.get("read_at")
            line = f"{model}: {', '.join(changed)} since {str(since)[:10] if since else TABLE}"
            self.changes.append(line)
            self.say(line)
        pages[key] = now | {"read_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        if self.path is not None:
            write_json(self.path, {"schema": PRICES_SCHEMA, "models": pages})


def _table_page(model: str) -> dict[str, Any] | None:
    """The page of a model as far as the table that ships has it."""
    settings = OFFLINE_PRICES.get(model)
    if settings is None or settings.tiers:
        return None
    given = {
        "prompt": settings.prompt_usd,
        "completion": settings.completion_usd,
        "input_cache_read": settings.cache_read_usd,
        "input_cache_write": settings.cache_write_usd,
    }
    pricing = {name: format(usd / MILLION, "f") for name, usd in given.items() if usd is not None}
    return {"entry": {"pricing": pricing}, "endpoints": [], "read_at": None}


def _key(server: str, model: str) -> str:
    return f"{server} {model}"


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is dearer, cheaper or another model than before: of the model's own page, and of each provider
    that was there before."""
    old_entry, new_entry = before.get("entry") or {}, now["entry"]
    if before.get("read_at") is None:  # a table says less than a page
        pricing = {name: new_entry["pricing"].get(name) for name in old_entry["pricing"]}
        new_entry = {"pricing": pricing}
    found = diff_model_info(old_entry, new_entry)
    if found:
        return found
    old = {each.get("tag"): each for each in before.get("endpoints") or ()}
    return [
        f"{what} at {each['tag']}"
        for each in now["endpoints"]
        if each.get("tag") in old
        for what in diff_model_info(old[each["tag"]], each)
    ]
