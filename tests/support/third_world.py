"""A world that every third task of is solved, whatever is done in it."""


class ThirdWorld:
    """Tasks whose number three divides are worth 1, others a quarter."""

    def reset(self, task: int) -> str:
        self._task = task
        return f"Ticket #{task} ."

    def look(self, path: str) -> str:
        """View a file.

        Args:
            path: The file.
        """
        return path

    def get_reward(self) -> float:
        return 0.25 if self._task % 3 else 1.0
