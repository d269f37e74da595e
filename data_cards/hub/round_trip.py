"""A round trip to the Hub: a private dataset is made, a file pushed and read back, and all of it deleted."""

import secrets
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.data_cards.hub.hub_errors import Patience, translate_hub_errors
from tracemill.data_cards.hub.repo_state import open_hub, require_writer
from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PROBE = "probe.txt"
PROBE_FILE = b"A connection test of tracemill. This dataset can be deleted.\n"
ROUND_TRIP_PATIENCE = Patience(tries=3, first_wait_s=1.0, most_wait_s=4.0, most_told_s=10.0)


@dataclass(slots=True)
class RoundTrip:
    """What came of a round trip.

    `fault` is why it failed, `left` says that the dataset may still be there and how to remove it; both are
    empty where all went well. `interrupted` is True where it was stopped.
    """

    repo_id: str
    fault: str = ""
    left: str = ""
    interrupted: bool = False
    seconds: float = 0.0


def draw_probe_repo(owner: str) -> str:
    """Return the name of a dataset that nobody has."""
    return f"{owner}/tracemill-doctor-{secrets.token_hex(8)}"


def removal_command(repo_id: str) -> str:
    """Return the command that removes a dataset from the Hub."""
    return f"hf repos delete {repo_id} --repo-type dataset --yes"


def make_round_trip(repo_id: str, go_on: Callable[[], None], patience: Patience) -> RoundTrip:
    """Make the dataset `repo_id`, push a file, read it back, and delete the dataset whatever happened.

    `go_on` is called between two requests and raises KeyboardInterrupt where it is to stop. Raises nothing
    for a fault of the Hub or an interrupt.
    """
    trip, started = RoundTrip(repo_id), time.monotonic()
    try:
        api = open_hub()
        patience.run(lambda: require_writer(api, repo_id))
        go_on()
    except ReleaseError as error:
        trip.fault = str(error)
        return trip
    except KeyboardInterrupt:
        trip.interrupted = True
        return trip
    try:
        _push_and_read(api, repo_id, go_on, patience)
    except ReleaseError as error:
        trip.fault = str(error)
    except KeyboardInterrupt:
        trip.interrupted = True
    finally:
        _delete(api, trip, patience)
    trip.seconds = time.monotonic() - started
    return trip


def _push_and_read(api: "HfApi", repo_id: str, go_on: Callable[[], None], patience: Patience) -> None:
    from huggingface_hub import CommitOperationAdd

    def run(what: str, call: Callable[[], object]) -> object:
        found = patience.run(lambda: translate_hub_errors(f"{what} {repo_id}", call))
        go_on()
        return found

    run("make", lambda: api.create_repo(repo_id, repo_type="dataset", private=True, exist_ok=True))
    if not run("a look at", lambda: api.dataset_info(repo_id).private):
        raise ReleaseError(f"{repo_id} was made public", "a private dataset")
    run(
        "commit to",
        lambda: api.create_commit(
            repo_id,
            [CommitOperationAdd(PROBE, PROBE_FILE)],
            commit_message="connection test",
            repo_type="dataset",
        ),
    )
    if run("read back from", lambda: _read(api, repo_id)) != PROBE_FILE:
        raise ReleaseError(f"{PROBE} of {repo_id} came back with other content", "the bytes that were pushed")


def _read(api: "HfApi", repo_id: str) -> bytes:
    """The pushed file; the cache of the user stays as it is."""
    with tempfile.TemporaryDirectory(prefix="tracemill-doctor-") as folder:
        return Path(api.hf_hub_download(repo_id, PROBE, repo_type="dataset", cache_dir=folder)).read_bytes()


def _delete(api: "HfApi", trip: RoundTrip, patience: Patience) -> None:
    """Delete the dataset, and note where that failed or was interrupted."""
    repo_id = trip.repo_id
    try:
        patience.run(
            lambda: translate_hub_errors(
                f"delete {repo_id}", lambda: api.delete_repo(repo_id, repo_type="dataset", missing_ok=True)
            )
        )
    except ReleaseError as error:
        why = str(error)
    except KeyboardInterrupt:
        trip.interrupted, why = True, "interrupted"
    else:
        return
    trip.left = f"{repo_id} may still be there ({why}): remove it with `{removal_command(repo_id)}`"
