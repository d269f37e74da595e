"""Repair: modules that return a number each, of which one or two return a wrong one, and tests.

The tests stop at the first failing module and tell what it should return; a module must be viewed to be
edited. The student's flaws: it finishes after an edit without running the tests again, and where a module
should return 7 or more it writes one less.
"""

from typing import Any

from benchmarks.teaching.worlds.world import Action, ToolFailure, draw

MODULES: tuple[str, ...] = (
    "cache",
    "lexer",
    "parser",
    "queue",
    "router",
    "loader",
    "writer",
    "reader",
    "codec",
    "timer",
)
TEST = "python -m pytest -q -x"
_FAILED = "[The command completed with exit code 1.]"
_FLAWED_FROM = 7


class RepairEnvironment:
    """A project of four modules and its tests."""

    def reset(self, task: int, **_: Any) -> str:
        rng = draw("repair", task)
        names = rng.sample(MODULES, 4)
        self._wanted = dict(zip(names, rng.sample(range(10), 4), strict=True))
        self._returns = dict(self._wanted)
        for name in rng.sample(names, rng.choice((1, 2))):
            self._returns[name] = rng.choice([n for n in range(10) if n != self._wanted[name]])
        self._failing: list[str] | None = None
        self._edited = False
        self._viewed: set[str] = set()
        self.done = False
        listed = " ".join(f"{name}.py" for name in names)
        return f"Ticket #{task} . Repair the project , its modules are {listed} . Run the tests first ."

    def get_reward(self) -> float:
        return float(self.done and self._returns == self._wanted)

    def execute_bash(self, command: str) -> str:
        """Run a command of the shell.

        Args:
            command: The command.
        """
        if command != TEST:
            raise ToolFailure(f"command not found\n{_FAILED}")
        self._failing = [name for name, value in self._returns.items() if value != self._wanted[name]]
        self._edited = False
        if not self._failing:
            return "4 passed"
        first = self._failing[0]
        raise ToolFailure(f"FAILED {first}.py should return {self._wanted[first]}\n{_FAILED}")

    def str_replace_editor(self, command: str, path: str, old_str: str = "", new_str: str = "") -> str:
        """View or edit a file.

        Args:
            command: `view` or `str_replace`.
            path: The file.
            old_str: What is replaced.
            new_str: What it is replaced with.
        """
        name = path.removesuffix(".py")
        if name not in self._returns:
            raise ToolFailure(f"ERROR : {path} does not exist")
        if command == "view":
            self._viewed.add(name)
            return f"def value() : return {self._returns[name]}"
        if command != "str_replace" or old_str != f"return {self._returns[name]}":
            raise ToolFailure(f"ERROR : no replacement was made in {path}")
        kept, _, number = new_str.partition(" ")
        if kept != "return" or not number.isdigit():
            raise ToolFailure(f"ERROR : no replacement was made in {path}")
        self._returns[name] = int(number)
        self._edited = True
        return f"{path} has been edited"

    def finish(self, message: str = "") -> str:
        """End the work.

        Args:
            message: What was done.
        """
        self.done = True
        return ""


class RepairWorld:
    """The right actions in a `RepairEnvironment`."""

    name = "repair"
    session_format = "swe_gym"
    turns = 16
    flaw_rate = 0.6
    slip_rate = 0.04

    def environment(self) -> RepairEnvironment:
        return RepairEnvironment()

    def right(self, env: RepairEnvironment) -> list[Action]:
        if env._failing is None or env._edited:
            return [_test()]
        if not env._failing:
            return [Action.call("finish", message="Done .")]
        name = env._failing[0]
        return [_edit(env, name, env._wanted[name]) if name in env._viewed else _view(name)]

    def flaw(self, env: RepairEnvironment) -> Action | None:
        if env._edited:
            return Action.call("finish", message="Done .")
        name = _at(env)
        if name and name in env._viewed and env._wanted[name] >= _FLAWED_FROM:
            return _edit(env, name, env._wanted[name] - 1)
        return None

    def slips(self, env: RepairEnvironment) -> list[Action]:
        name = _at(env)
        passing = [other for other in env._returns if other not in (env._failing or ())]
        slips = [_view(passing[0]), Action.call("finish", message="Done .")]
        if name and name in env._viewed:
            slips.append(_edit(env, name, (env._wanted[name] + 3) % 10))
        if env._failing is not None and not env._edited:
            slips.append(_test())
        return [slip for slip in slips if slip not in self.right(env)]

    def common_error(self, env: RepairEnvironment) -> Action:
        name = _at(env)
        if name and name in env._viewed:
            return _edit(env, name, (env._wanted[name] + 1) % 10)
        passing = [other for other in env._returns if other not in (env._failing or ())]
        return _view(passing[-1])


def _at(env: RepairEnvironment) -> str | None:
    return env._failing[0] if env._failing and not env._edited else None


def _test() -> Action:
    return Action.call("execute_bash", command=TEST)


def _view(name: str) -> Action:
    return Action.call("str_replace_editor", command="view", path=f"{name}.py")


def _edit(env: RepairEnvironment, name: str, number: int) -> Action:
    return Action.call(
        "str_replace_editor",
        command="str_replace",
        path=f"{name}.py",
        old_str=f"return {env._returns[name]}",
        new_str=f"return {number}",
    )
