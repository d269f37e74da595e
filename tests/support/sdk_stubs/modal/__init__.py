"""A stand-in for the package modal 1.6 that notes what it is called with in the file `$MODAL_STUB`."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class _Error(Exception): ...


class _NotFoundError(_Error): ...


class _AuthError(_Error): ...


exception = SimpleNamespace(Error=_Error, NotFoundError=_NotFoundError, AuthError=_AuthError)


def _state() -> dict[str, Any]:
    path = Path(os.environ["MODAL_STUB"])
    return json.loads(path.read_text()) if path.exists() else {}


def _write(state: dict[str, Any]) -> None:
    Path(os.environ["MODAL_STUB"]).write_text(json.dumps(state))


class App:
    def __init__(self, name: str) -> None:
        self.name = name

    @staticmethod
    def lookup(name: str, /, *, create_if_missing: bool = False) -> "App":
        assert create_if_missing
        return App(name)


class Image:
    def __init__(self, tag: str, commands: tuple[str, ...] = ()) -> None:
        self.tag, self.commands = tag, commands

    @staticmethod
    def from_registry(tag: str) -> "Image":
        return Image(tag)

    def run_commands(self, *commands: str) -> "Image":
        return Image(self.tag, commands)


class Secret:
    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    @staticmethod
    def from_dict(values: dict[str, str]) -> "Secret":
        return Secret(values)


class Sandbox:
    def __init__(self, object_id: str) -> None:
        self.object_id = object_id

    @staticmethod
    def create(
        *command: str,
        app: App,
        name: str,
        image: Image,
        env: dict[str, str],
        secrets: list[Secret],
        gpu: str,
        timeout: int,
    ) -> "Sandbox":
        state = _state()
        object_id = f"sb-{len(state)}"
        called = {"command": list(command), "app": app.name, "name": name, "env": env}
        called |= {"image": image.tag, "setup": list(image.commands), "gpu": gpu, "timeout": timeout}
        called["secrets"] = [secret.values for secret in secrets]
        _write(state | {object_id: {"called": called, "code": None}})
        return Sandbox(object_id)

    @staticmethod
    def from_name(app_name: str, name: str, *, include_terminated: bool = False) -> "Sandbox":
        assert include_terminated
        for object_id, sandbox in _state().items():
            if (sandbox["called"]["app"], sandbox["called"]["name"]) == (app_name, name):
                return Sandbox(object_id)
        raise _NotFoundError(name)

    @staticmethod
    def from_id(object_id: str) -> "Sandbox":
        return Sandbox(object_id)

    def poll(self) -> int | None:
        return _state()[self.object_id]["code"]

    @property
    def stdout(self) -> list[str]:
        return ["step 1 of 2\n", "step 2 of 2\n"]

    def terminate(self) -> None:
        state = _state()
        state[self.object_id]["code"] = 137
        _write(state)
