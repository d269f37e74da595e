"""Write the versions of code into the digests of stored results.

A result is reused while the versions of what made it are equal. Each version is an integer constant
beside its code:

- `version` of each `SessionFormat` of a source, in its folder of `ingesters`
- `SELECTION_VERSION` in `flows.admission.trace_inventory`
- `REDACTION_VERSION` in `privacy.redaction.redactor`
- `PRESENTATION_VERSION` in `harnesses.presentation`
- `VOTE_VERSION` in `agreement.voting.vote`
- `PAIRS_VERSION` in `pairs.teacher_pairs`, and `version` of each `LabelSource` of a package

Raise it when equal input gives another output: a golden test fails until that is done.
"""

from collections.abc import Mapping

from tracemill.records.identity import canonical_json

_FIRST_DIGESTS = {
    ("selection", '{"selection":1}'): "97620c7012cffe6afb4118939404230d",
    ("redaction", '{"redaction":6}'): "9830c2b7196c443548c1b583396978e9",
    ("vote", '{"vote":1}'): "vote",
}
"""The first workspaces hold hashes of source code where versions stand now. These are the hashes that
stood for today's first versions, so that nothing in such a workspace is read, redacted or labelled again."""


def versions_text(of: str, versions: Mapping[str, int]) -> str:
    """Return a text that identifies the versions that make one kind of stored result."""
    text = canonical_json(dict(versions))
    return _FIRST_DIGESTS.get((of, text), text)
