"""The publish gate: judge a release, decoded as readers see it, before it is published."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from tracemill.privacy.publish_gate.accepted_findings import read_accepted, record_accepted
from tracemill.privacy.publish_gate.findings import Finding, summarize_findings
from tracemill.privacy.publish_gate.kingfisher import ABSENT
from tracemill.privacy.publish_gate.scan_paths import Scanner, ScanProgress, ScanResult
from tracemill.records.errors import PrivacyError, RefusedReleaseError
from tracemill.records.printable import printable, printable_count

SHOWN = 50  # findings that an error lists


@dataclass(frozen=True, slots=True)
class PassedRelease:
    """A release that may be published.

    `accepted` counts the different findings that were allowed; `opinions` names the scanners.
    """

    opinions: tuple[str, ...]
    accepted: int
    texts: int
    seconds: float

    @property
    def statement(self) -> str:
        """Return `own rules r1 and kingfisher 2.14.0`, or that there was one opinion only."""
        named = " and ".join(self.opinions)
        return named if len(self.opinions) > 1 else f"own rules only ({named}); kingfisher was not installed"

    def lines(self) -> list[str]:
        """Return what was scanned with which scanners, and a line where there was no second one."""
        found = printable_count(self.accepted, "allowed finding") if self.accepted else "nothing found"
        said = [f"{self.texts:,} texts scanned, {found} ({', '.join(self.opinions)})"]
        return said if len(self.opinions) > 1 else [*said, ABSENT]


@dataclass(frozen=True, slots=True)
class PublishGate:
    """A gate that refuses a release that holds anything private.

    `accept` has fingerprints of findings to allow. Those that occur are recorded in the file at `record` and
    stay allowed. `require_second` makes a missing kingfisher an error.
    """

    scanner: Scanner
    rules_version: str
    record: Path
    accept: Collection[str] = ()
    require_second: bool = False

    def check(self) -> None:
        """Raise PrivacyError where the gate cannot judge.

        That is where kingfisher is required and absent, or the record is damaged.
        """
        self.scanner.require_second(self.require_second)
        read_accepted(self.record)

    def judge(self, folder: Path, on_progress: Callable[[ScanProgress], None] | None = None) -> PassedRelease:
        """Judge a release folder, and return what was judged.

        `on_progress` is called about once a second.

        Raises RefusedReleaseError for a finding that is not allowed, PrivacyError where something cannot be
        read.
        """
        self.check()
        verdict = self.scanner.scan(folder, on_progress)
        known = {*self.accept, *read_accepted(self.record)}
        accepted = [found for found in verdict.findings if found.fingerprint in known]
        record_accepted(self.record, accepted)
        refused = [found for found in verdict.findings if found.fingerprint not in known]
        if refused:
            error = RefusedReleaseError(*_refusal(refused, verdict))
            error.values = tuple(verdict.values[name] for name in {found.fingerprint for found in refused})
            raise error
        if verdict.not_read:
            reasons = "; ".join(f"{why}: {', '.join(files)}" for why, files in verdict.not_read.items())
            raise PrivacyError(
                f"the release is refused: not all of it could be read ({reasons})", "all of it"
            )
        different = {found.fingerprint for found in accepted}
        return PassedRelease(
            release_gate_opinions(verdict, self.rules_version), len(different), verdict.texts, verdict.seconds
        )


def release_gate_opinions(verdict: ScanResult, rules_version: str) -> tuple[str, ...]:
    """Return the scanners that judged: `own rules r1`, `kingfisher 2.14.0`."""
    own = f"own rules {rules_version}"
    return (own, f"kingfisher {verdict.second}") if verdict.second else (own,)


_WAYS_OUT = (
    "add --redact-findings to redact them and go on, or --allow-finding the fingerprint of each that "
    "may be published; `tracemill status --pairs 3` shows pairs meanwhile:"
)


def _refusal(refused: list[Finding], verdict: ScanResult) -> tuple[str, str, str]:
    values: dict[str, list[Finding]] = {}
    for found in refused:
        values.setdefault(found.fingerprint, []).append(found)
    lines = [
        f"  {printable(replace(same[0], times=sum(each.times for each in same)).text(), 2_000)}"
        for same in list(values.values())[:SHOWN]
    ]
    if len(values) > SHOWN:
        lines.append(f"  and {len(values) - SHOWN} more")
    if verdict.second is None:
        lines.append(f"  {ABSENT}")
    return (
        f"the release is refused: {summarize_findings(refused)}",
        "none",
        "\n".join([_WAYS_OUT, *lines]),
    )
