"""A home of Prefect with its database: migrating an empty one takes a server seven seconds of a processor.

The database is made once for each version of Prefect and lies in the user's cache folder.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tracemill.privacy.redaction.hyperscan_cache import hyperscan_cache_folder

_MAKE = """
import asyncio
from prefect.server.database import provide_database_interface
from prefect.server.models.block_registration import run_block_auto_registration

async def make():
    database = provide_database_interface()
    await database.create_db()
    async with database.session_context() as session:
        await run_block_auto_registration(session=session)

asyncio.run(make())
"""


def prefect_home(folder: Path) -> Path:
    """The folder, made with a copy of the database."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(_made_once(), folder, dirs_exist_ok=True)
    return folder


@cache
def _made_once() -> Path:
    place = hyperscan_cache_folder().with_name("tracemill-tests") / f"prefect-{version('prefect')}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        made = Path(folder) / "home"
        env = dict(os.environ) | {"PREFECT_HOME": str(made), "PREFECT_LOGGING_LEVEL": "CRITICAL"}
        subprocess.run([sys.executable, "-c", _MAKE], env=env, check=True)
        with suppress(OSError):  # another process was faster
            made.rename(place)
    return place
