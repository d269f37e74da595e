"""The flow that a worker of a GPU work pool runs for one training job."""

from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from tracemill.train.launch.launcher import JobState
from tracemill.train.launch.run_job import run_folder

FLOW_NAME = "tracemill-training-job"
ENTRYPOINT = "tracemill.train.launch.prefect_flow.training_job"


@flow(name=FLOW_NAME, persist_result=False, validate_parameters=False)
def training_job(folder: str) -> State[None]:
    """Run the job of a folder that this machine shares with the one that submitted it.

    The server learns whether there is a checkpoint; the reason of a failure is in `outcome.json`.
    """
    if run_folder(Path(folder)) == JobState.SUCCEEDED:
        return Completed(message="the checkpoint is there")
    return Failed(message="no checkpoint; outcome.json in the folder of the job says why")
