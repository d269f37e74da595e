"""Settings of a run on several processes or machines."""

from pydantic import Field

from tracemill.records.frozen_model import FrozenModel


class ClusterSettings(FrozenModel):
    """Settings of the cluster that executes the stages of a run (`flows/runtime/ray_pool.py`)."""

    workers: int = Field(1, ge=1)
    """Ray workers that read, ask and label; 1 does it in the process of the command."""
    address: str | None = None
    """Address of a Ray cluster, as `ray.init` takes it; none given: Ray on this machine, for the run."""
    wait_s: float = Field(300.0, gt=0)
    """Seconds to wait until the cluster has room for the workers."""

    @property
    def is_used(self) -> bool:
        """Return whether stages are executed on Ray."""
        return self.workers > 1 or self.address is not None
