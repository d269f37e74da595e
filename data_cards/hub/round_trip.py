"""Test the Hub: create a private dataset, push a file, read it back, and delete everything."""

import secrets
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.data_cards.hub.hub_errors import RetryPolicy
from tracemill.data_cards.hub.repo_state import open_hub, require_writer
from tracemill.records.errors import ReleaseError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PROBE = "probe.txt"
PROBE_FILE = b"A connection test of tracemill. This dataset can be deleted.\n"
ROUND_TRIP_PATIENCE = RetryPolicy(tries=3, first_wait_s=1.0, most_wait_s=4.0, most_retry_after_s=10.0)


@dataclass(slots=True)
class RoundTrip:
    """The result of a round trip.

    `fault` says why it failed, `left` that the dataset may still exist and how to remove it; both are ""
    after success. `interrupted` is True if it was stopped.
    """

    repo_id: str
    fault: str = ""
    left: str = ""
    interrupted: bool = False
    seconds: float = 0.0


def draw_probe_repo(owner: str) -> str:
    """Return a random name for a dataset of `owner`."""
    return f"{owner}/tracemill-doctor-{secrets.token_hex(8)}"


def removal_command(repo_id: str) -> str:
    """Return the command that removes a dataset from the Hub."""
    return f"hf repos delete {repo_id} --repo-type dataset --yes"


def make_round_trip(repo_id: str, go_on: Callable[[], None], patience: RetryPolicy) -> RoundTrip:
    """Create the dataset `repo_id`, push a file, read it back, and delete the dataset in any case.

    `go_on` is called between requests and raises KeyboardInterrupt to stop. No error of the Hub and no
    interrupt is raised.
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


def _push_and_read(api: "HfApi", repo_id: str, go_on: Callable[[], None], patience: RetryPolicy) -> None:
    from huggingface_hub import CommitOperationAdd

    def run(what: str, call: Callable[[], object]) -> object:
        result = patience.request(f"{what} {repo_id}", call)
        go_on()
        return result

    run("make", lambda: api.create_repo(repo_id, repo_type="dataset", private=True, exist_ok=True))
    if not run("a look at", lambda: api.dataset_info(repo_id).private):
        raise ReleaseError(
            f"the test dataset {repo_id} is public on the Hub",
            "a private dataset",
            "check the default visibility of the owner's repositories",
        )
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
    """Download the pushed file, without using the user's cache."""
    with tempfile.TemporaryDirectory(prefix="tracemill-doctor-") as folder:
        return Path(api.hf_hub_download(repo_id, PROBE, repo_type="dataset", cache_dir=folder)).read_bytes()


def _delete(api: "HfApi", trip: RoundTrip, patience: RetryPolicy) -> None:
    """Delete the dataset, or record why it may still exist."""
    repo_id = trip.repo_id
    try:
        patience.request(
            f"delete {repo_id}", lambda: api.delete_repo(repo_id, repo_type="dataset", missing_ok=True)
        )
    except ReleaseError as error:
        why = str(error)
    except KeyboardInterrupt:
        trip.interrupted, why = True, "interrupted"
    else:
        return
    trip.left = f"{repo_id} may still be there ({why}): remove it with `{removal_command(repo_id)}`"
