"""Tell whether the user named a Prefect server, before Prefect is imported."""

import os
import tomllib
from pathlib import Path


def names_a_server() -> bool:
    """Return whether `PREFECT_API_URL` or a Prefect profile names a server, without importing Prefect."""
    if os.environ.get("PREFECT_API_URL"):
        return True
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    try:
        found = tomllib.loads(profiles.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    active = found.get("profiles", {}).get(os.environ.get("PREFECT_PROFILE") or found.get("active"), {})
    return bool(isinstance(active, dict) and active.get("PREFECT_API_URL"))
