"""The project that a session worked on, for which consent is asked."""

from typing import NamedTuple


class Project(NamedTuple):
    """A folder with all below it; without a folder, a project's name, a repository or a source.

    `digest` is a hash of the recorded name under the workspace's redaction key: folders of two people
    differ even if their redacted paths are equal. `name` and `place` are redacted, and the same in every
    trace.
    """

    digest: str
    name: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.place})" if self.place else self.name
