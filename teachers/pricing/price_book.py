"""Keep the last known prices and snapshots of models on disk, with their date.

A run reads the catalogue before it spends anything and reports what changed since; an estimate without
network uses what is stored here.
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


@dataclass(slots=True)
class PriceBook:
    """The models of one workspace by server and id; without a `path`, of this process.

    `say` gets a line for every model whose price or snapshot differs from the planned one, before any call;
    `changes` has all lines. The planned one is that of `planned`, by server and id, else the stored one,
    else the bundled table's. `read_now` has the models whose prices were read by this process.
    """

    path: Path | None = None
    say: Callable[[str], None] = lambda line: None
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
        """Return data that this process read of a server within `FRESH_S`, None if it did not."""
        read_at, value = self._recent.get(what, (-FRESH_S, None))
        return value if time.monotonic() - read_at < FRESH_S else None

    def just_read(self, what: object, value: Any) -> None:
        """Keep data just read, in memory only."""
        self._recent[what] = (time.monotonic(), value)

    def charged(self, server: str, model: str, times: float) -> None:
        """Record that a call cost `times` its tokens at the list price."""
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
        """Return the highest recorded ratio of charge to list price; 1 without a record."""
        return self._charged.get(_key(server, model), 1.0)

    def _read(self) -> dict[str, dict[str, Any]]:
        """Return the stored pages; none if the file is broken or of another schema."""
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
        """Return the stored card of a model and the day it was read (UTC); None if there is none."""
        page = self._read().get(_key(server, model))
        if page is None:
            return None
        try:
            card = read_model_info_of_endpoints(page["entry"], page["endpoints"], provider)
        except (KeyError, TypeError, ValueError):
            return None
        return None if card is None else (card, str(page["read_at"])[:10])

    def page(self, server: str, model: str) -> dict[str, Any] | None:
        """Return the stored page of a model: `entry`, `endpoints` and `read_at`; None without one."""
        return self._read().get(_key(server, model))

    def remember(
        self, server: str, model: str, entry: Mapping[str, Any], endpoints: Sequence[Mapping[str, Any]]
    ) -> None:
        """Store a model's catalogue entry, and report changes."""
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
    """Return the page of a model with the prices of the bundled table."""
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
    """Return the changes of the model's own page, else of each provider that was there before."""
    old_entry, new_entry = before.get("entry") or {}, now["entry"]
    if before.get("read_at") is None:  # the bundled table has fewer fields
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
