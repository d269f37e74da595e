"""The student: a small language model from scratch, its tokenizer, and how it acts in a world.

Needs the extra `train`. Words are tokens, so that a few hundred thousand weights are enough to read a
session and to copy names from it.
"""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.teaching.policies import Session, Turn, weak_session
from benchmarks.teaching.worlds.world import Action, World, act

SPECIAL = ("<pad>", "<unk>", "<end>", "<user>", "<agent>", "<result>", "<call>")
TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.role == 'user' %}<user> {{ m.content }} <end> "
    "{% elif m.role == 'tool' %}<result> {{ m.content }} <end> "
    "{% elif m.role == 'assistant' %}<agent> {{ m.content or '' }} "
    "{% for c in m.tool_calls or [] %}<call> {{ c.function.name }} "
    "{% for key, value in c.function.arguments.items() %}<{{ key }}> {{ value }} {% endfor %}"
    "{% endfor %}<end> "
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<agent> {% endif %}"
)
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<agent>",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<call>\s*(?P<name>\S+)",
            "close_pattern": r"<end>\s*",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"<(?P<key>[^<>\s]+)>\s*(?P<value>.*?)\s*(?=<[^<>\s]+>|$)",
                "value_parser": {"name": "text"},
            },
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
        "content": {"close_pattern": r"<end>\s*", "content": "text"},
    },
}
"""How transformers reads the student's words back, as `parse_action` does."""
HINT = "<hint>"
"""The word before the action that a hint names."""
MOST_WORDS = 40
INITIAL = 0.1
"""Standard deviation of the first weights; at the 0.02 of wide models one so narrow learns far slower."""
VOCABULARY_TASKS = 1500
PRACTICE_STEPS = 600
PRACTICE_TASKS = range(1_000_000, 1_003_000)
"""Tasks of the sessions that the student is first trained on; no other tasks are among them."""


@dataclass(frozen=True)
class Size:
    """Width, layers and heads of a student."""

    name: str
    width: int
    layers: int
    heads: int


SMALL, LARGE = Size("small", 64, 2, 2), Size("large", 128, 3, 4)


def action_text(action: Action) -> str:
    """Return an action as the chat template writes it, from behind `<agent>` up to `<end>`."""
    if not action.tool:
        return f"{action.text} <end>"
    arguments = " ".join(f"<{key}> {value}" for key, value in action.arguments)
    return f"<call> {action.tool} {arguments} <end>"


def parse_action(words: Sequence[str]) -> Action:
    """Return the action that words of the student are; what is no whole call is a text."""
    if "<call>" not in words:
        return Action.say(" ".join(word for word in words if not word.startswith("<")))
    called = list(words[words.index("<call>") + 1 :])
    if not called:
        return Action.say("")
    name, arguments = called[0], dict[str, list[str]]()
    key = ""
    for word in called[1:]:
        if word == "<call>":
            break
        if len(word) > 2 and word.startswith("<") and word.endswith(">"):
            key = word[1:-1]
            arguments[key] = []
        elif key:
            arguments[key].append(word)
    return Action(name, tuple((key, " ".join(value)) for key, value in arguments.items()))


def hint_text(action: Action) -> str:
    """Return the hint that names an action."""
    return f"{HINT} {action_text(action).removesuffix(' <end>')}"


def session_text(session: Session, turns: int | None = None, hinted: Sequence[int] = ()) -> str:
    """Return a session, or its first turns, as the chat template writes it.

    The turns `hinted` have a hint of their own action before them, as `add_hint` places it.
    """
    parts = [f"<user> {session.text} <end>"]
    for place, turn in enumerate(session.turns[:turns]):
        if place in hinted:
            hint = hint_text(turn.action)
            parts = (
                [f"<user> {session.text} {hint} <end>"] if place == 0 else [*parts, f"<user> {hint} <end>"]
            )
        parts.append(f"<agent> {action_text(turn.action)}")
        if turn.action.tool:
            parts.append(f"<result> {turn.result} <end>")
    return " ".join(parts)


def make_tokenizer(world: World) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a world: every word that may be said in it."""
    words: dict[str, None] = dict.fromkeys(SPECIAL)
    for task in range(VOCABULARY_TASKS):
        words.update(dict.fromkeys(session_text(weak_session(world, 2_000_000 + task)).split()))
    words.update(_error_words(world))
    known = [word for word in words if not word.startswith("#")]
    inner = Tokenizer(WordLevel({word: place for place, word in enumerate(known)}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<end>",
        chat_template=TEMPLATE,
        model_max_length=512,
    )
    tokenizer.response_template = RESPONSE_TEMPLATE
    return tokenizer


def _error_words(world: World) -> dict[str, None]:
    """Words of what is wrong: what teachers may say, the student must be able to say."""
    words: dict[str, None] = {}
    for task in range(200):
        env = world.environment()
        env.reset(task=2_000_000 + task)
        for _ in range(world.turns):
            for action in (*world.slips(env), world.common_error(env), *world.right(env)):
                words.update(dict.fromkeys(action_text(action).split()))
            act(env, world.right(env)[0])
            if env.done:
                break
    return words


def make_model(tokenizer: PreTrainedTokenizerFast, size: Size, seed: int) -> LlamaForCausalLM:
    """Return a model with random weights."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=size.width,
            intermediate_size=size.width * 2,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            initializer_range=INITIAL,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )


def practise(
    world: World, folder: Path, size: Size, seed: int, steps: int = PRACTICE_STEPS, hinted: float = 0.0
) -> Path:
    """Train a student from scratch on sessions of the weak policy and save it; return the folder.

    A share of `hinted` actions has a hint before it, so that the student reads hints.
    """
    if (folder / "config.json").exists():
        return folder
    tokenizer = make_tokenizer(world)
    if hinted:
        tokenizer.add_tokens([HINT])
    model = make_model(tokenizer, size, seed)
    sessions, rng = [weak_session(world, task) for task in PRACTICE_TASKS], random.Random(f"hints {seed}")
    texts = [
        session_text(each, hinted=[place for place in range(len(each.turns)) if rng.random() < hinted])
        for each in sessions
    ]
    rows = [(ids, said_by_agent(ids, tokenizer)) for ids in tokenizer(texts)["input_ids"]]
    train_on(model, rows, tokenizer.pad_token_id, steps, seed)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def said_by_agent(ids: Sequence[int], tokenizer: Any) -> list[bool]:
    """Return which tokens of a session the agent wrote, `<end>` included."""
    agent, end = (tokenizer.convert_tokens_to_ids(word) for word in ("<agent>", "<end>"))
    marks, speaking = list[bool](), False
    for token in ids:
        marks.append(speaking)
        speaking = token == agent or (speaking and token != end)
    return marks


def train_on(
    model: Any,
    rows: Sequence[tuple[Sequence[int], Sequence[bool]]],
    pad: int,
    steps: int,
    seed: int,
    rate: float = 4e-3,
    batch: int = 16,
) -> float:
    """Train on the marked tokens of rows with AdamW and a cosine schedule; return the last loss.

    Rows of a batch have similar lengths, so that little is padding.
    """
    rows = sorted(rows, key=lambda row: len(row[0]))
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01, betas=(0.9, 0.98))
    rng, loss = random.Random(seed), torch.tensor(0.0)
    model.train()
    for step in range(steps):
        for group in optimiser.param_groups:
            fallen = 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * step / steps))
            group["lr"] = rate * min(1.0, (step + 1) / 50) * fallen
        first = rng.randrange(len(rows) - batch)
        ids, labels = _padded(rows[first : first + batch], pad)
        loss = model(input_ids=ids, attention_mask=ids != pad, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return float(loss.detach())


def _padded(
    rows: Sequence[tuple[Sequence[int], Sequence[bool]]], pad: int
) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), longest), pad)
    labels = torch.full((len(rows), longest), -100)
    for place, (row, marks) in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        labels[place, : len(row)] = torch.tensor(
            [token if mark else -100 for token, mark in zip(row, marks, strict=True)]
        )
    return ids, labels


class Student:
    """A student loaded from a folder, to act."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.model.eval()

    def play(
        self, world: World, tasks: Iterable[int], seed: int, temperature: float = 1.0, samples: int = 1
    ) -> list[Session]:
        """Play each task `samples` times, all at once. Temperature 0 takes the likeliest word."""
        torch.manual_seed(seed)
        games = [(world.environment(), task, sample) for task in tasks for sample in range(samples)]
        sessions = [Session(task, env.reset(task=task), sample=sample) for env, task, sample in games]
        open_games = list(range(len(games)))
        for _ in range(world.turns):
            if not open_games:
                break
            texts = [f"{session_text(sessions[place])} <agent>" for place in open_games]
            for place, action in zip(open_games, self._next(texts, temperature), strict=True):
                result = act(games[place][0], action)
                sessions[place].turns.append(Turn(action, result.text, result.failed))
            open_games = [place for place in open_games if not games[place][0].done]
        for (env, *_), session in zip(games, sessions, strict=True):
            session.reward = env.get_reward()
        return sessions

    def _next(self, texts: Sequence[str], temperature: float) -> list[Action]:
        ids = self.tokenizer(list(texts), padding=True, padding_side="left", return_tensors="pt")
        how: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            how = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        with torch.inference_mode():
            made = self.model.generate(
                input_ids=ids["input_ids"],
                attention_mask=ids["attention_mask"],
                max_new_tokens=MOST_WORDS,
                pad_token_id=self.tokenizer.pad_token_id,
                eos_token_id=self.tokenizer.eos_token_id,
                **how,
            )
        new = made[:, ids["input_ids"].shape[1] :].tolist()
        stops = {self.tokenizer.pad_token_id, self.tokenizer.eos_token_id}
        return [
            parse_action(self.tokenizer.convert_ids_to_tokens([token for token in row if token not in stops]))
            for row in new
        ]

    def log_probability(self, prompts: Sequence[str], answers: Sequence[str]) -> list[float]:
        """Return the log-probability of each answer (natural, summed over its words) behind its prompt."""
        rows = []
        for prompt, answer in zip(prompts, answers, strict=True):
            head, tail = self.tokenizer(prompt)["input_ids"], self.tokenizer(answer)["input_ids"]
            rows.append(([*head, *tail], [False] * len(head) + [True] * len(tail)))
        ids, labels = _padded(rows, self.tokenizer.pad_token_id)
        with torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=ids != self.tokenizer.pad_token_id).logits
        logps = torch.log_softmax(logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
        return (logps * (labels[:, 1:] >= 0)).sum(-1).tolist()


def success(sessions: Sequence[Session]) -> float:
    """Return the share of sessions that solved their task."""
    return sum(session.reward for session in sessions) / len(sessions)
