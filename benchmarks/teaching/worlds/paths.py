"""Paths: settings of services, in files of which copies lie in several folders.

Which copy counts is told by `main.cfg` alone; a service must be reloaded behind a change. The student's
flaws: it edits the copy in `etc` without looking, and finishes without a reload where the port is above 85.
"""

from typing import Any

from benchmarks.teaching.worlds.world import Action, ToolFailure, draw

SERVICES = ("web", "mail", "chat", "feed")
FOLDERS = ("etc", "opt", "srv", "var")
PORTS = tuple(map(str, range(81, 90)))
_MAIN = "cat main.cfg"
_FAILED = "[The command completed with exit code 1.]"
_FLAWED_ABOVE = 85


class PathsEnvironment:
    """Four services, with a file for each in four folders."""

    def reset(self, task: int, **_: Any) -> str:
        rng = draw("paths", task)
        self._service = rng.choice(SERVICES)
        self._port = rng.choice(PORTS)
        self._places = {name: f"{rng.choice(FOLDERS)}/{name}.cfg" for name in SERVICES}
        old = [port for port in PORTS if port != self._port]
        self._ports = {f"{folder}/{name}.cfg": rng.choice(old) for folder in FOLDERS for name in SERVICES}
        self._before = dict(self._ports)
        self._locked = self._places[self._service] if rng.random() < 0.4 else ""
        self._running = self._ports[self._places[self._service]]
        self._known = self._refused = False
        self._last = ""
        self.done = False
        return f"Ticket #{task} . Set the port of {self._service} to {self._port} . See main.cfg ."

    def get_reward(self) -> float:
        return float(self.done and self._running == self._port and self._others_are_kept())

    def execute_bash(self, command: str) -> str:
        """Run a command of the shell.

        Args:
            command: The command.
        """
        self._last = command
        words = command.split()
        if command == _MAIN:
            self._known = True
            return "\n".join(f"{name} {place}" for name, place in self._places.items())
        if words[:1] == ["cat"] and len(words) == 2 and words[1] in self._ports:
            return f"port {self._ports[words[1]]}"
        if words[:2] == ["chmod", "+w"] and len(words) == 3 and words[2] in self._ports:
            self._locked = "" if words[2] == self._locked else self._locked
            return ""
        if words[:3] == ["git", "config", "-f"] and len(words) == 6 and words[3] in self._ports:
            return self._set(words[3], words[5])
        if words[:2] == ["systemctl", "reload"] and len(words) == 3 and words[2] in SERVICES:
            if words[2] == self._service:
                self._running = self._ports[self._places[self._service]]
            return f"{words[2]} was reloaded"
        raise ToolFailure(f"command not found\n{_FAILED}")

    def finish(self, message: str = "") -> str:
        """End the work.

        Args:
            message: What was done.
        """
        self.done = True
        return ""

    def _set(self, path: str, port: str) -> str:
        if path == self._locked:
            self._refused = True
            raise ToolFailure(f"Permission denied\n{_FAILED}")
        self._ports[path] = port
        return ""

    def _others_are_kept(self) -> bool:
        mine = self._places[self._service]
        return all(self._ports[path] == port for path, port in self._before.items() if path != mine)


class PathsWorld:
    """The right actions in a `PathsEnvironment`."""

    name = "paths"
    session_format = "swe_gym"
    turns = 14
    flaw_rate = 0.5
    slip_rate = 0.04

    def environment(self) -> PathsEnvironment:
        return PathsEnvironment()

    def right(self, env: PathsEnvironment) -> list[Action]:
        mine = env._places[env._service]
        if not env._known:
            return [_bash(_MAIN)]
        if env._ports[mine] != env._port:
            if env._refused and env._locked:
                return [_bash(f"chmod +w {mine}")]
            right = [_set(env, mine)]
            return [*right, _bash(f"chmod +w {mine}")] if env._locked else right
        if env._running != env._port:
            return [_bash(f"systemctl reload {env._service}")]
        return [Action.call("finish", message="Done .")]

    def flaw(self, env: PathsEnvironment) -> Action | None:
        etc = f"etc/{env._service}.cfg"
        if not env._known and env._ports[etc] != env._port:
            return _set(env, etc)
        mine = env._places[env._service]
        if env._ports[mine] == env._port != env._running and int(env._port) > _FLAWED_ABOVE:
            return Action.call("finish", message="Done .")
        return None

    def slips(self, env: PathsEnvironment) -> list[Action]:
        mine = env._places[env._service]
        copies = [f"{folder}/{env._service}.cfg" for folder in FOLDERS]
        wrong = next(path for path in copies if path != mine)
        done = Action.call("finish", message="Done .")
        slips = [_bash(_MAIN), _set(env, wrong), _bash(f"cat {wrong}"), done]
        return [slip for slip in slips if slip not in self.right(env)]

    def common_error(self, env: PathsEnvironment) -> Action:
        mine = env._places[env._service]
        if env._known and env._ports[mine] != env._port:
            return _bash(f"git config -f {mine} {env._service}.port 80")
        return _bash(f"systemctl reload {next(name for name in SERVICES if name != env._service)}")


def _bash(command: str) -> Action:
    return Action.call("execute_bash", command=command)


def _set(env: PathsEnvironment, path: str) -> Action:
    return _bash(f"git config -f {path} {env._service}.port {env._port}")
