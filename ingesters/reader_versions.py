"""The version of each reader: raise it when a reader gives other traces for the same files."""

READER_VERSIONS = {
    "claude_code": 1,
    "openhands": 1,
    "swe_gym": 1,
    "swe_agent": 1,
    "mini_swe_agent": 1,
}


def source_of(dialect: str | None) -> str | None:
    """Return the source a dialect belongs to, None where it is no session."""
    if dialect is None:
        return None
    return next((source for source in READER_VERSIONS if dialect.startswith(source)), None)
