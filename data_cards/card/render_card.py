"""Render the dataset card: YAML metadata for the Hub, and a page from `card.md.jinja`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

from tracemill.data_cards.card.tallies import RowCounts
from tracemill.data_cards.model.columns import base_config
from tracemill.data_cards.model.manifest import Manifest, SplitEntry, TableEntry
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.records.errors import ReleaseError
from tracemill.records.label_source import source_in_words, source_title
from tracemill.records.plain_words import reason_in_words, stage_in_words

_LINE_EACH = ("configs", "dataset_info")
_YAML: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 10**6}
TEMPLATE = Path(__file__).with_name("card.md.jinja")
# Sizes as the Hub names them: https://github.com/huggingface/hub-docs/blob/main/datasetcard.md
_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
)
# Licence identifiers of the Hub that recorded sessions come with; others become `other`.
_LICENCES_TEXT = "apache-2.0 mit cc-by-4.0 cc-by-sa-4.0 cc0-1.0 odc-by bsd-3-clause cc-by-nc-4.0"
_LICENCES = frozenset(_LICENCES_TEXT.split())

CONFIG_DESCRIPTIONS = {
    "dpo": "one row a preference pair (TRL's `DPOTrainer`)",
    "dpo_json": "`dpo` with `tool_calls` and `tools` as JSON texts, for `datasets` before 4.7",
    "sft": "one row an action at a step, `prompt` and `completion` with a `weight`: `agreed`, `solved` and "
    "the chosen sides of other sources, each once (`SFTTrainer`)",
    "agreed": "one row an asked step at which enough teachers agreed on an action, also the agent's own",
    "solved": "one row a step of a session that solved its task, without those a pair is made against",
    "kto": "each side of a pair with its `label`, true where it is the chosen one (`KTOTrainer`); a side of "
    "two pairs of a step stands once",
    "prm": "runs of judged steps as text, `completions` with `labels` (TRL's stepwise supervision, "
    "`PRMTrainer` up to TRL 1.13), and each chosen action as one right step",
    "hints": "`prompt` and what one who knows better would be told there as `privileged_context` "
    "(`SDPOTrainer`, `SDFTTrainer`)",
    "soft": "the votes at a step as a distribution: `candidates`, each an action (`completion`) with its "
    "`weight`; `agreed` marks those that teachers agreed on",
    "votes": "one row a teacher's vote, also those that did not count",
    "dropped": "one row a pair that was dropped, with operator, reason and value",
}
"""Descriptions of the configs on the card."""


def describe_config(name: str) -> str:
    """Return the description of a config on the card."""
    base = base_config(name)
    if name == base:
        return CONFIG_DESCRIPTIONS[name]
    tokens = int(name.removeprefix(f"{base}_").removesuffix("k")) * 1024
    return f"`{base}` with contexts cut to {tokens:,} tokens"


def render_card(spec: ReleaseSpec, manifest: Manifest, tallies: RowCounts) -> str:
    """Render README.md.

    Raises ReleaseError if the template uses an undefined name.
    """
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters.update(
        cell=_cell,
        lines=cell_of_lines,
        usd=_usd,
        share=_share,
        titled=source_title,
        stage=stage_in_words,
        reason=reason_in_words,
    )
    head = _head_text(render_card_head(spec, manifest))
    words = {"holds": describe_config, "base": base_config, "means": lambda name: source_in_words(name).means}
    try:
        template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
        shortened = any(base_config(name) != name for name in manifest.tables)
        return template.render(head=head, spec=spec, m=manifest, t=tallies, shortened=shortened, **words)
    except jinja2.TemplateError as error:
        raise ReleaseError(f"the card cannot be rendered ({error})") from error


def render_card_head(spec: ReleaseSpec, manifest: Manifest) -> dict[str, Any]:
    """Build the YAML metadata: licence, tags, size, and the configs with their files and features."""
    head: dict[str, Any] = {"pretty_name": spec.pretty_name or spec.name}
    if spec.language:
        head["language"] = list(spec.language)
    head |= _licence(manifest.sources)
    head["annotations_creators"] = ["machine-generated"]
    head["task_categories"] = ["text-generation"]
    head["size_categories"] = [_size(max(manifest.rows, manifest.labels.released))]
    head["tags"] = _tags(manifest)
    default = "dpo" if "dpo" in manifest.tables else "sft"
    head["configs"] = [_config(name, entry, name == default) for name, entry in manifest.tables.items()]
    head["dataset_info"] = [_info(name, manifest) for name in manifest.tables]
    return head


def _head_text(head: Mapping[str, Any]) -> str:
    """Return the metadata as YAML, each config and its sizes on one line."""
    parts: list[str] = []
    for name, value in head.items():
        if name in _LINE_EACH:
            lines = (yaml.safe_dump(each, default_flow_style=True, **_YAML).strip() for each in value)
            parts.append("".join([f"{name}:\n", *(f"- {line}\n" for line in lines)]))
        else:
            parts.append(yaml.safe_dump({name: value}, **_YAML))
    return "".join(parts)


def _licence(sources: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    licences = {licence.lower() for counts in sources.values() for licence in counts}
    if licences == {"unknown"}:
        return {"license": "unknown"}
    if len(licences) == 1 and licences <= _LICENCES:
        return {"license": licences.pop()}
    return {"license": "other", "license_name": "by-source", "license_link": "README.md"}


def _tags(manifest: Manifest) -> list[str]:
    tags = ["tracemill", "preference", "dpo", "trl", "coding-agent", "tool-calling", "format:parquet"]
    return tags if manifest.simulated == "none" else [*tags, "simulated"]


def _size(rows: int) -> str:
    return next((name for limit, name in _SIZES if rows < limit), "n>10M")


def _config(name: str, entry: TableEntry, default: bool) -> dict[str, Any]:
    config: dict[str, Any] = {"config_name": name}
    if default:
        config["default"] = True
    files = [{"split": split, "path": _pattern(each)} for split, each in entry.splits.items()]
    return {**config, "data_files": files}


def _pattern(entry: SplitEntry) -> str:
    """Return the path of the file of a split, or a glob if there are several."""
    first = entry.files[0].path
    return first if len(entry.files) == 1 else f"{first.partition('-')[0]}-*.parquet"


def _info(name: str, manifest: Manifest) -> dict[str, Any]:
    """Return the sizes of a config.

    Its features are in the Parquet file alone: `datasets` before 4.7 opens no config at all if the metadata
    names a JSON column.
    """
    entry = manifest.tables[name]
    return {
        "config_name": name,
        "splits": [
            {"name": split, "num_bytes": each.memory_bytes, "num_examples": each.rows}
            for split, each in entry.splits.items()
        ],
        "download_size": entry.file_bytes,
        "dataset_size": entry.memory_bytes,
    }


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split()) or " "


def cell_of_lines(text: str) -> str:
    """Return a text as one table cell that keeps line breaks and indentation."""
    lines = str(text).strip().splitlines()
    return (
        "<br>".join("&nbsp;" * (len(line) - len(line.lstrip())) + _cell(line).strip() for line in lines)
        or " "
    )


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def _share(part: float, whole: float = 1.0) -> str:
    return f"{part / whole:.1%}" if whole else "0.0%"
