"""A home of Prefect with its database: migrating an empty one takes a server seven seconds of a processor."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

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
    """The folder, made with a copy of the database that this process shares."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(_made_once(), folder, dirs_exist_ok=True)
    return folder


@cache
def _made_once() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tracemill-prefect-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    env = dict(os.environ) | {"PREFECT_HOME": str(folder), "PREFECT_LOGGING_LEVEL": "CRITICAL"}
    subprocess.run([sys.executable, "-c", _MAKE], env=env, check=True)
    return folder
