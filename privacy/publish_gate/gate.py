"""The publish gate: a release is judged as it will be read, decoded, before it lies in its place."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tracemill.privacy.publish_gate.accepted_findings import read_accepted, record_accepted
from tracemill.privacy.publish_gate.findings import Finding, summarize_findings
from tracemill.privacy.publish_gate.kingfisher import ABSENT
from tracemill.privacy.publish_gate.scan_paths import Scanner, Verdict
from tracemill.records.errors import PrivacyError
from tracemill.records.printable import printable

SHOWN = 50  # findings that an error lists


@dataclass(frozen=True, slots=True)
class Passed:
    """A release that may be published. `accepted`: different findings let pass; `release_gate_opinions` who
    judged."""

    opinions: tuple[str, ...]
    accepted: int
    texts: int
    seconds: float

    @property
    def statement(self) -> str:
        """`own rules r1 and kingfisher 2.14.0`, or that there was one opinion only."""
        said = " and ".join(self.opinions)
        return said if len(self.opinions) > 1 else f"own rules only ({said}); kingfisher was not installed"

    def lines(self) -> list[str]:
        """For people: what was judged by whom, and in a line of its own that there was no second."""
        found = f"{self.accepted} accepted findings" if self.accepted else "no finding"
        said = [f"{self.texts:,} texts, {found}: {' and '.join(self.opinions)}"]
        return said if len(self.opinions) > 1 else [*said, ABSENT]


@dataclass(frozen=True, slots=True)
class PublishGate:
    """Refuses a release that holds anything private.

    `accept` are fingerprints to let pass; those met are kept in the file at `record`, and hold from then
    on. `require_second` makes a missing kingfisher an error.
    """

    scanner: Scanner
    rules_version: str
    record: Path
    accept: Collection[str] = ()
    require_second: bool = False

    def check(self) -> None:
        """Raises PrivacyError where the gate could not judge: kingfisher wanted and absent, or a broken
        record."""
        self.scanner.require_second(self.require_second)
        read_accepted(self.record)

    def judge(self, folder: Path) -> Passed:
        """What was judged. Raises PrivacyError where something was found that nobody accepted, and where
        something could not be read."""
        self.check()
        verdict = self.scanner.scan(folder)
        known = {*self.accept, *read_accepted(self.record)}
        accepted = [found for found in verdict.findings if found.fingerprint in known]
        record_accepted(self.record, accepted)
        refused = [found for found in verdict.findings if found.fingerprint not in known]
        if refused:
            raise PrivacyError(*_refusal(refused, verdict))
        if verdict.not_read:
            said = "; ".join(f"{why}: {', '.join(files)}" for why, files in verdict.not_read.items())
            raise PrivacyError(f"the release is refused: not all of it could be read ({said})", "all of it")
        different = {found.fingerprint for found in accepted}
        return Passed(
            release_gate_opinions(verdict, self.rules_version), len(different), verdict.texts, verdict.seconds
        )


def release_gate_opinions(verdict: Verdict, rules_version: str) -> tuple[str, ...]:
    """Who judged: `own rules r1`, `kingfisher 2.14.0`."""
    own = f"own rules {rules_version}"
    return (own, f"kingfisher {verdict.second}") if verdict.second else (own,)


def _refusal(refused: list[Finding], verdict: Verdict) -> tuple[str, str, str]:
    lines = [f"  {printable(found.text(), 2_000)}" for found in refused[:SHOWN]]
    if len(refused) > SHOWN:
        lines.append(f"  and {len(refused) - SHOWN} more")
    if verdict.second is None:
        lines.append(f"  {ABSENT}")
    return (
        f"the release is refused: {summarize_findings(refused)}",
        "none",
        "\n".join(["redact them, or --accept the fingerprint of each that may be published:", *lines]),
    )
