"""Train a tiny model on word problems in the style of GSM8K, with rewards, hints and pairs.

python examples/composer_gsm8k.py

The problems are made up here, and so is the model: 86,000 weights, taught by solutions of which some are
wrong. Its own wrong answers make hint rows, whose hint is the first step, and pairs of the right solution
over the wrong one. `ComposerReplicationTrainer` trains on all three: GRPO, whose reward is 1 for the right
number behind ####, hints and pairs. The table is the same at every run. It shows that the channels work
together; a model of this size says nothing on what they are worth.
"""

import random
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, PrinterCallback
from trl.trainer.grpo_config import GRPOConfig

import tracemill as tm
from tracemill.train.composer.composer_trainer import Channels
from tracemill.train.composer.encode_rows import encode_hint_rows, encode_pair_rows
from tracemill.train.composer.reference import ReferenceLogProbs
from tracemill.train.hints.hint_rows import add_hint

SEED = 7
TAUGHT_STEPS, TAUGHT_WRONG, TAUGHT_HINTED = 250, 0.3, 0.3
TRAINED_STEPS, GENERATIONS = 12, 8
MAX_LENGTH, ANSWER_TOKENS = 128, 24
END, PAD = "<|end|>", "<|pad|>"
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% if m.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
KINDS = (
    ("{name} has {a} boxes of {b} pens and gives {c} pens away. How many pens are left?", "-"),
    ("{name} reads {a} pages a day for {b} days and {c} pages more. How many pages is that?", "+"),
    ("{name} plants {a} rows of {b} trees, and {c} trees die. How many trees live?", "-"),
)
NAMES = ("Ana", "Ben", "Chi", "Dov")


@dataclass(frozen=True)
class Problem:
    """A word problem of two steps: a product, and a number that is added or taken away."""

    text: str
    a: int
    b: int
    c: int
    sign: str

    @property
    def first_step(self) -> str:
        """Return the first step of the solution."""
        return f"{self.a}*{self.b}={self.a * self.b}"

    @property
    def answer(self) -> int:
        """Return the right number."""
        return self.a * self.b + (self.c if self.sign == "+" else -self.c)

    def solution(self, first: int | None = None) -> str:
        """Return the solution as GSM8K writes it, or the one that a wrong product `first` leads to."""
        product = self.a * self.b if first is None else first
        end = product + (self.c if self.sign == "+" else -self.c)
        return f"{self.a}*{self.b}={product} {product}{self.sign}{self.c}={end} #### {end}"

    def asked(self, hinted: bool = False) -> list[dict[str, Any]]:
        """Return the problem as a conversation, with the first step as a hint where `hinted`."""
        prompt = [{"role": "user", "content": self.text}]
        return add_hint(prompt, f"The first step is {self.first_step}.") if hinted else prompt


def problems() -> list[Problem]:
    """Return all problems, shuffled."""
    rng = random.Random(SEED)
    made = [
        Problem(text.format(name=rng.choice(NAMES), a=a, b=b, c=c), a, b, c, sign)
        for text, sign in KINDS
        for a in range(2, 8)
        for b in range(2, 8)
        for c in range(1, 4)
    ]
    rng.shuffle(made)
    return made


def is_right(problem: Problem, said: str) -> bool:
    """Return whether an answer ends with the right number behind ####."""
    found = re.search(r"#### (-?\d+)\s*$", said)
    return found is not None and int(found[1]) == problem.answer


def reward(completions: list[Any], answer: list[int], **_: Any) -> list[float]:
    """Return 1 for a completion with the right number behind ####, else 0, as TRL's `reward_funcs` does."""
    found = [re.search(r"#### (-?\d+)\s*$", each[0]["content"]) for each in completions]
    return [float(f is not None and int(f[1]) == right) for f, right in zip(found, answer, strict=True)]


def make_tokenizer(texts: Sequence[str]) -> Any:
    """Return a tokenizer of words and single digits."""
    words = Tokenizer(models.WordLevel(unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\d|[^\d\s]+|\s"), "isolated")
    words.decoder = decoders.Fuse()
    special = [PAD, END, "<|user|>", "<|assistant|>", "?"]
    words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=special))
    made: Any = PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token=END, pad_token=PAD, unk_token="?", padding_side="left"
    )
    made.chat_template = TEMPLATE
    return made


def teach(tokenizer: Any, taught: Sequence[Problem]) -> Any:
    """Return a model that was taught solutions, some of them wrong, with and without a hint."""
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=MAX_LENGTH,
            tie_word_embeddings=True,
            initializer_range=0.1,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )
    rng, rows = random.Random(SEED), list[tuple[list[int], int]]()
    for problem in [*taught] * 4:
        hinted = rng.random() < TAUGHT_HINTED
        wrong = not hinted and rng.random() < TAUGHT_WRONG
        slip = problem.a * problem.b + rng.choice((-2, -1, 1, 2)) if wrong else None
        context = tokenizer.apply_chat_template(
            problem.asked(hinted), tokenize=False, add_generation_prompt=True
        )
        ids = tokenizer(context, add_special_tokens=False)["input_ids"]
        said = tokenizer(problem.solution(slip) + END, add_special_tokens=False)["input_ids"]
        rows.append((ids + said, len(ids)))
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(TAUGHT_STEPS):
        optimiser.param_groups[0]["lr"] = 4e-3 * min(1.0, (step + 1) / 30) * (1 - 0.9 * step / TAUGHT_STEPS)
        ids, labels = padded(rng.sample(rows, 16), tokenizer.pad_token_id)
        model(input_ids=ids, attention_mask=ids != tokenizer.pad_token_id, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def padded(rows: Sequence[tuple[list[int], int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids and labels, which leave out the context of each row."""
    longest = max(len(ids) for ids, _ in rows)
    ids, labels = torch.full((len(rows), longest), pad), torch.full((len(rows), longest), -100)
    for place, (row, context) in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        labels[place, context : len(row)] = torch.tensor(row[context:])
    return ids, labels


def answers(model: Any, tokenizer: Any, asked: Sequence[Problem]) -> list[str]:
    """Return the most likely answer of the model to each problem."""
    texts = [
        tokenizer.apply_chat_template(each.asked(), tokenize=False, add_generation_prompt=True)
        for each in asked
    ]
    given = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")
    ids = model.generate(
        given["input_ids"],
        attention_mask=given["attention_mask"],
        do_sample=False,
        max_new_tokens=ANSWER_TOKENS,
        pad_token_id=tokenizer.pad_token_id,
    )
    return [
        tokenizer.decode(each[given["input_ids"].shape[1] :], skip_special_tokens=True).strip()
        for each in ids
    ]


def channels_of(model: Any, tokenizer: Any, wrong: Sequence[tuple[Problem, str]]) -> Channels:
    """Return hint rows and pairs of the wrong answers, with the model as it is as the reference of pairs."""
    hints, pairs = list[dict[str, Any]](), list[dict[str, Any]]()
    for number, (problem, said) in enumerate(wrong):
        failed, right = ([{"role": "assistant", "content": text}] for text in (said, problem.solution()))
        prompts = {"prompt": problem.asked(), "hinted_prompt": problem.asked(hinted=True)}
        hints.append({"step_id": f"problem-{number}", **prompts, "completion": failed, "tools": []})
        sides = {"chosen": right, "rejected": failed}
        pairs.append({"pair_id": f"problem-{number}", "prompt": problem.asked(), **sides, "tools": []})
    encoded = encode_pair_rows(pairs, tokenizer, MAX_LENGTH).examples
    reference = ReferenceLogProbs(model, "taught", tokenizer.pad_token_id)
    reference.settle(encoded)
    return Channels(
        hints=encode_hint_rows(hints, tokenizer, MAX_LENGTH).examples,
        pairs=encoded,
        alpha_sdpo=0.1,
        beta_replay=0.05,
        batch_size=8,
        seed=SEED,
        reference=reference,
    )


def train(
    model: Any, tokenizer: Any, train_on: Sequence[Problem], channels: Channels
) -> list[dict[str, Any]]:
    """Train the model and return what each step logged."""
    rows = [{"prompt": each.asked(), "answer": each.answer} for each in train_on]
    with tempfile.TemporaryDirectory() as folder:
        trainer = tm.ComposerReplicationTrainer(
            model=model,
            reward_funcs=reward,
            args=GRPOConfig(
                output_dir=folder,
                max_steps=TRAINED_STEPS,
                per_device_train_batch_size=8 * GENERATIONS,
                num_generations=GENERATIONS,
                max_completion_length=ANSWER_TOKENS,
                learning_rate=1e-4,
                logging_steps=1,
                top_k=0,
                disable_dropout=True,
                gradient_checkpointing=False,
                use_cpu=True,
                bf16=False,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
                seed=SEED,
            ),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            channels=channels,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [entry for entry in trainer.state.log_history if "loss/total" in entry]


def main() -> None:
    """Print the losses of the channels, and how many unseen problems are solved before and after."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    made = problems()
    taught, unseen = made[:240], made[240:]
    texts = [
        f"<|user|>{p.text}\n\n The first step is {p.first_step}. {p.solution()}<|assistant|>" for p in made
    ]
    tokenizer = make_tokenizer(texts)
    model = teach(tokenizer, taught)
    before = [is_right(p, said) for p, said in zip(unseen, answers(model, tokenizer, unseen), strict=True)]
    wrong = [
        (problem, said)
        for problem, said in zip(taught, answers(model, tokenizer, taught), strict=True)
        if not is_right(problem, said)
    ]
    logged = train(model, tokenizer, taught, channels_of(model, tokenizer, wrong))
    model.eval()
    after = [is_right(p, said) for p, said in zip(unseen, answers(model, tokenizer, unseen), strict=True)]

    print(f"problems {len(taught)} to learn from, {len(unseen)} unseen; wrong answers {len(wrong)}")
    print("step  reward       grpo       sdpo     replay      total")
    names = ("loss/grpo", "loss/sdpo_kl", "loss/trace_replay_dpo", "loss/total")
    for step, entry in enumerate(logged, 1):
        losses = "".join(f"{entry[name]:>+11.6f}" for name in names)
        print(f"{step:>4}{entry['reward']:>8.4f}{losses}")
    print(f"unseen problems solved {sum(before)}, then {sum(after)} of {len(unseen)}")


if __name__ == "__main__":
    main()
