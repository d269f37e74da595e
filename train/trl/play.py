"""Let models act in a world: `python -m tracemill.train.trl.play FOLDER` answers a `PlayRequest`."""

# pyright: reportMissingImports=false

import importlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.utils.chat_template_utils import get_json_schema
from trl.chat_template_utils import add_response_schema

from tracemill.records.errors import TrainingError
from tracemill.train.ask_child import answer_parent
from tracemill.train.played_worlds import PlayedTasks, PlayRequest
from tracemill.train.trl.load_release import load_tokenizer, model_error
from tracemill.train.trl.worker import worker_error_text

_BATCH = 32
_NO_TOOLS = frozenset({"reset", "get_reward"})
_NO_TOOL = "ERROR: there is no tool of this name"


class _Episode:
    """One task: the environment, its tools and the conversation so far."""

    def __init__(self, world: Any, task: int) -> None:
        self.env = world()
        self.tools = tools_of(self.env)
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": self.env.reset(task=task)}]
        self.calls = 0
        self.over = False

    def answer(self, message: dict[str, Any]) -> None:
        """Take an action of the model; one without a call ends the episode."""
        calls = message.get("tool_calls") or []
        self.messages.append(
            {"role": "assistant", "content": message.get("content") or "", "tool_calls": calls}
        )
        for call in calls:
            self.calls += 1
            name = call["function"]["name"]
            said = self._call(name, call["function"].get("arguments"))
            self.messages.append({"role": "tool", "name": name, "content": said})
        if not calls and hasattr(self.env, "done"):
            self.env.done = True
        self.over = not calls or bool(getattr(self.env, "done", False))

    def _call(self, name: str, arguments: Any) -> str:
        if name not in self.tools:
            return _NO_TOOL
        try:
            return str(self.tools[name](**arguments))
        except Exception as error:  # tools may raise anything; the model is shown what
            return str(error)


def tools_of(env: Any) -> dict[str, Any]:
    """Return the public methods of an environment but `reset` and `get_reward`."""
    methods = inspect.getmembers(env, inspect.ismethod)
    return {name: method for name, method in methods if not name.startswith("_") and name not in _NO_TOOLS}


def play(question: PlayRequest) -> PlayedTasks:
    """Play every task with each model.

    Raises TrainingError if a model or the world cannot be loaded, or calls of a model cannot be read.
    """
    world = load_world(question.world)
    played = PlayedTasks(rewards={}, calls={}, cut={}, malformed={})
    for name, folder in question.models.items():
        player = _Player(question, folder)
        torch.manual_seed(question.settings.seed)
        numbers = range(question.first, question.first + question.tasks)
        episodes = [_Episode(world, number) for number in numbers]
        for _ in range(question.turns):
            player.answer([each for each in episodes if not each.over])
        played.rewards[name] = [float(each.env.get_reward()) for each in episodes]
        played.calls[name] = sum(each.calls for each in episodes)
        played.cut[name] = player.cut
        played.malformed[name] = player.malformed
    return played


def load_world(name: str) -> Any:
    """Return the class `module:class`. Raises TrainingError if it cannot be played."""
    module, colon, attribute = name.partition(":")
    try:
        world = getattr(importlib.import_module(module), attribute) if colon else None
    except (ImportError, AttributeError, ValueError) as error:
        raise TrainingError(
            f"the world {name} cannot be imported ({worker_error_text(error)})", "module:class on PYTHONPATH"
        ) from error
    if not (inspect.isclass(world) and hasattr(world, "reset") and hasattr(world, "get_reward")):
        raise TrainingError(f"{name!r} is no world", "module:class with `reset`, `get_reward` and tools")
    return world


class _Player:
    """A model that answers conversations."""

    def __init__(self, question: PlayRequest, folder: str) -> None:
        self._question, self.cut, self.malformed = question, 0, 0
        settings = question.settings.model_copy(update={"model": folder})
        self._tokenizer = load_tokenizer(settings)
        if getattr(self._tokenizer, "response_template", None) is None:
            try:
                self._tokenizer = add_response_schema(self._tokenizer)
            except ValueError as error:
                raise TrainingError(
                    f"calls of {folder} cannot be read: its chat template is none that TRL knows",
                    "such a template, or a tokenizer with a response_template",
                ) from error
        try:
            model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
        except (OSError, ValueError) as error:
            raise model_error(folder, error) from error
        gpu = settings.device != "cpu" and torch.cuda.is_available()
        self._model = model.to("cuda" if gpu else "cpu").eval()

    def answer(self, episodes: Sequence[_Episode]) -> None:
        """Let the model act once in each episode; an episode whose prompt is too long ends."""
        asked: list[tuple[_Episode, str, list[dict[str, Any]], list[int]]] = []
        room = self._question.settings.max_length - self._question.new_tokens
        for each in episodes:
            tools = [get_json_schema(tool) for tool in each.tools.values()]
            prompt = self._tokenizer.apply_chat_template(
                each.messages, tools=tools, tokenize=False, add_generation_prompt=True
            )
            ids = self._tokenizer(prompt, add_special_tokens=False)["input_ids"]
            if len(ids) > room:
                each.over, self.cut = True, self.cut + 1
            else:
                asked.append((each, prompt, tools, ids))
        for begin in range(0, len(asked), _BATCH):
            some = asked[begin : begin + _BATCH]
            for (each, prompt, tools, _), said in zip(
                some, self._generate([ids for *_, ids in some]), strict=True
            ):
                each.answer(self._read(said, prompt, tools))

    def _read(self, said: str, prompt: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """Parse the model's output as a message; a malformed call is kept as text, and counted."""
        try:
            return self._tokenizer.parse_response(said, prefix=prompt, tools=tools)
        except (ValueError, KeyError, TypeError):
            self.malformed += 1
            return {"content": said}

    @torch.inference_mode()
    def _generate(self, rows: Sequence[Sequence[int]]) -> list[str]:
        width, pad = max(map(len, rows)), self._tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        temperature = self._question.temperature
        how: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            how = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        made = self._model.generate(
            input_ids=ids.to(self._model.device),
            attention_mask=mask.to(self._model.device),
            max_new_tokens=self._question.new_tokens,
            pad_token_id=pad,
            **how,
        )
        new = made[:, width:].tolist()
        return [self._tokenizer.decode([token for token in row if token != pad]) for row in new]


if __name__ == "__main__":
    sys.exit(
        answer_parent(
            Path(sys.argv[1]),
            lambda text: play(PlayRequest.model_validate_json(text)),
            worker_error_text,
        )
    )
