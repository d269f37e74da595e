"""A model repository on the Hub: checkpoints as commits, tags that move."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tracemill.records.errors import TrainingError

T = TypeVar("T")
_CARD = "README.md"
"""The card belongs to the repository: that of peft names folders of this machine, which the Hub refuses."""
_CHECKPOINT = ("*.safetensors", "*.bin", "*.json", "*.jinja", "*.txt", "*.model", "*.log")
"""Files of checkpoints: those that a later one lacks are removed."""


class ModelRepository:
    """One model repository; the token is that of `HF_TOKEN` or of `hf auth login`."""

    def __init__(self, repo_id: str) -> None:
        from huggingface_hub import HfApi

        self.api = HfApi()
        self.repo_id = repo_id

    def push(self, folder: Path, name: str) -> str:
        """Upload the files of a checkpoint as one commit and return it.

        A missing repository is created, private. Files of an earlier checkpoint are removed. Raises
        TrainingError if the Hub refuses.
        """
        self._ask("create", lambda: self.api.create_repo(self.repo_id, private=True, exist_ok=True))
        info = self._ask(
            "upload to",
            lambda: self.api.upload_folder(
                repo_id=self.repo_id,
                folder_path=folder,
                commit_message=f"Train on {name}",
                ignore_patterns=[_CARD],
                delete_patterns=list(_CHECKPOINT),
            ),
        )
        return str(info.oid)

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag; empty if the repository does not exist."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def read() -> dict[str, str]:
            try:
                refs = self.api.list_repo_refs(self.repo_id)
            except RepositoryNotFoundError:
                return {}
            return {tag.name: tag.target_commit for tag in refs.tags}

        return self._ask("read the tags of", read)

    def tag(self, name: str, commit: str) -> None:
        """Put a tag on a commit; it leaves the one it was on."""
        there = self.tags().get(name)
        if there == commit:
            return
        if there is not None:
            self._ask("move a tag of", lambda: self.api.delete_tag(self.repo_id, tag=name))
        self._ask("tag", lambda: self.api.create_tag(self.repo_id, tag=name, revision=commit))

    def fetch(self, revision: str, target: Path) -> None:
        """Download a checkpoint into a folder that does not exist; it appears whole or not at all."""
        partial = target.parent / f".{target.name}.download"

        def download() -> str:
            return self.api.snapshot_download(self.repo_id, revision=revision, local_dir=partial)

        self._ask("download", download)
        shutil.rmtree(partial / ".cache", ignore_errors=True)
        partial.rename(target)

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        """Return the result of a call; any refusal is a TrainingError in one line."""
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.utils import httpx

        try:
            return call()
        except (HfHubHTTPError, OSError, httpx.TransportError, RuntimeError, ValueError) as error:
            cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ else error
            if isinstance(cause, HfHubHTTPError):
                problem = f"the Hub answers {cause.response.status_code} to {what} {self.repo_id}"
            else:
                problem = f"could not {what} {self.repo_id} ({type(cause).__name__})"
            raise TrainingError(
                problem,
                "a model repository that the token of HF_TOKEN may read and write",
                "the same command resumes",
            ) from None
