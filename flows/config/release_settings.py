"""Settings of normalisation and release: which pairs are kept, and what is published."""

import re
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, NonNegativeInt, field_validator

from tracemill.data_cards.model.drift_bounds import DriftBounds
from tracemill.data_cards.model.versions import REPO_ID, is_reserved
from tracemill.privacy.publish_gate.findings import FINGERPRINT
from tracemill.records.frozen_model import FrozenModel

View = Literal["dpo_json", "sft", "agreed", "solved", "kto", "prm", "hints", "soft"]
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class NormalizeSettings(FrozenModel):
    """Settings of normalisation: which pairs are kept (`normalize/`)."""

    recipe: Path | None = None
    """A data-juicer recipe; none given: the one that ships as configs/normalize/default.yaml."""
    benchmarks: tuple[Path, ...] = ()
    """Local files of benchmarks for evaluation (JSONL, Parquet), whose sessions are kept out of training."""


class ReleaseSettings(FrozenModel):
    """Settings of a release: what it holds and where it is published (`data_cards/`)."""

    name: str = "traces"
    """Folder of the release and name of the dataset: lower-case letters, digits, `. _ -`."""
    allow_findings: tuple[str, ...] = ()
    """Fingerprints of findings that the publish gate lets pass."""
    redact_findings: bool = False
    """Redact what the publish gate finds, and write the release again, instead of refusing it."""
    require_second_opinion: bool = False
    """Refuse to release where kingfisher is not installed."""
    views: tuple[View, ...] = get_args(View)
    """Configs beside pairs and votes: labelled actions, and the same for other readers and trainers."""
    file_mb: float = Field(500, gt=0)
    """Megabytes of a Parquet file behind which another one is begun."""
    hub: str | None = None
    """Dataset of the Hub, `owner/name`, that a finished release is pushed to; none given: it stays here."""
    drift: DriftBounds = DriftBounds()
    """How far a release may be from the last one published."""
    validation: float = Field(0.05, ge=0, le=0.5)
    """Share of the rows in the split `validation`, as far as whole repositories make it up."""
    test: float = Field(0.05, ge=0, le=0.5)
    """Share of the rows in the split `test`, likewise."""
    max_tokens: NonNegativeInt = 32768
    """Tokens a row may have; longer contexts are cut. 0 for any number."""
    short: tuple[int, ...] = (1024, 4096, 8192)
    """Tokens of the configs for trainers with short contexts, such as `sft_4k`; lengths that `max_tokens`
    already keeps are left out."""
    tokenizer: Path | None = None
    """Tokenizer of the model that is trained (`tokenizer.json` or its folder); none given: an estimate."""
    outcomes: Path | None = None
    """JSON Lines of sessions and whether each solved its task, for those whose files do not tell."""
    min_new_pairs: NonNegativeInt = 0
    """New pairs that a run waits for before it makes a version; 0 for any new content."""
    max_age_days: float | None = Field(None, gt=0)
    """Age of the last version from which on fewer new pairs make one."""
    rebuild: bool = False
    """Choose rows and sides anew, as a new major version."""

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("lower-case letters, digits and . _ - only, at most 64, no leading sign")
        if is_reserved(name):
            raise ValueError("neither `latest` nor a date, which stand for versions")
        return name

    @field_validator("short")
    @classmethod
    def _thousands(cls, short: tuple[int, ...]) -> tuple[int, ...]:
        if any(most < 1024 or most % 1024 for most in short):
            raise ValueError("multiples of 1024 tokens")
        return tuple(sorted(set(short)))

    @field_validator("hub")
    @classmethod
    def _dataset(cls, hub: str | None) -> str | None:
        if hub is not None and not REPO_ID.fullmatch(hub):
            raise ValueError("a dataset of the Hub as OWNER/NAME")
        return hub

    @field_validator("allow_findings")
    @classmethod
    def _fingerprints(cls, findings: tuple[str, ...]) -> tuple[str, ...]:
        if not all(FINGERPRINT.fullmatch(finding) for finding in findings):
            raise ValueError("12 hex digits each, as the publish gate prints them")
        return findings
