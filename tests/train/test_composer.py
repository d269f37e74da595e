"""The three-channel trainer on a tiny model: GRPO without channels, scaled, resumed, on two processes."""

import json
import logging
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

from composer_training import (  # noqa: E402
    LENGTH,
    channels_of,
    hint_rows,
    logged,
    make_tiny,
    model_of,
    nll,
    pair_rows,
    trainer_of,
    varied,
    weights,
)
from transformers import AutoTokenizer  # noqa: E402

from tracemill.records.errors import TrainingError  # noqa: E402
from tracemill.train.compose import compose_loss  # noqa: E402
from tracemill.train.composer.composer_trainer import (  # noqa: E402
    STATE_FILE,
    Channels,
    SilentToolsCallback,
)
from tracemill.train.composer.encode_rows import (  # noqa: E402
    collate_hints,
    collate_pairs,
    encode_hint_rows,
    encode_pair_rows,
)
from tracemill.train.composer.example_stream import ExampleStream  # noqa: E402
from tracemill.train.composer.reference import ReferenceLogProbs  # noqa: E402

pytestmark = [
    pytest.mark.slow,  # as all that needs PyTorch
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL's own defaults
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny)


def test_without_channels_it_is_grpo_bit_by_bit(
    tiny: Path, tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    four = {"per_device_train_batch_size": 4, "num_generations": 4}
    plain = trainer_of(tiny, tmp_path / "a", None, varied, **four)
    plain.train()
    with caplog.at_level(logging.WARNING):
        ours = trainer_of(tiny, tmp_path / "b", channels_of(tiny, tokenizer), varied, **four)
    ours.train()
    assert "channel sdpo is off: alpha_sdpo is 0" in caplog.text
    assert "channel replay is off: beta_replay is 0" in caplog.text
    before, after = weights(plain), weights(ours)
    start = dict(model_of(tiny).named_parameters())
    assert any(not torch.equal(before[name], start[name]) for name in before)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert logged(plain, "loss") == logged(ours, "loss")
    assert logged(ours, "loss/grpo") == logged(ours, "loss/total")
    assert logged(ours, "loss/sdpo_kl") == logged(ours, "loss/trace_replay_dpo") == []


def test_every_channel_is_logged_and_none_is_zero(tiny: Path, tokenizer: Any, tmp_path: Path) -> None:
    channels = channels_of(tiny, tokenizer, alpha_sdpo=0.5, beta_replay=0.2, alpha_warmup_steps=4)
    trainer = trainer_of(tiny, tmp_path, channels, varied, max_steps=6)
    trainer.train()
    sdpo, replay = logged(trainer, "loss/sdpo_kl"), logged(trainer, "loss/trace_replay_dpo")
    assert len(sdpo) == len(replay) == 6
    assert all(value > 1e-6 for value in sdpo)
    assert replay[0] == pytest.approx(0.6931, abs=1e-3)  # the policy is the reference
    assert replay[-1] < replay[0]
    assert logged(trainer, "alpha_sdpo") == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5, 0.5])
    assert any(value != 0 for value in logged(trainer, "loss/grpo"))
    for total, grpo, kl, dpo, alpha in zip(
        logged(trainer, "loss/total"),
        logged(trainer, "loss/grpo"),
        sdpo,
        replay,
        logged(trainer, "alpha_sdpo"),
        strict=True,
    ):
        assert total == pytest.approx(grpo + alpha * kl + 0.2 * dpo, rel=1e-5)


@pytest.mark.parametrize("settings", [{}, {"dpo_variant": "simpo", "sdpo_wrapper": "entropy_opd"}])
def test_the_gradient_does_not_grow_with_accumulation(
    tiny: Path, tokenizer: Any, tmp_path: Path, settings: dict[str, Any]
) -> None:
    norms = []
    for steps in (1, 2, 4):
        more = {"alpha_sdpo": 1.0, "beta_replay": 1.0, "batch_size": 6, "settings": settings}
        channels = channels_of(tiny, tokenizer, **more)
        trainer = trainer_of(
            tiny,
            tmp_path / str(steps),
            channels,
            gradient_accumulation_steps=steps,
            max_steps=2,
            learning_rate=0.0,
        )
        trainer.train()
        norms.append(logged(trainer, "grad_norm")[0])
    assert norms[0] > 1e-3
    assert norms[1:] == pytest.approx([norms[0]] * 2, rel=0.1)


def test_a_resumed_training_ends_with_the_same_weights(tiny: Path, tokenizer: Any, tmp_path: Path) -> None:
    more = {"alpha_sdpo": 0.5, "beta_replay": 0.5, "batch_size": 1}
    steps = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    whole = trainer_of(tiny, tmp_path / "a", channels_of(tiny, tokenizer, **more), varied, **steps)
    whole.train()
    kept = json.loads((tmp_path / "a" / "checkpoint-2" / STATE_FILE).read_text())
    assert kept == {"sdpo": 2, "replay": 2}
    again = trainer_of(tiny, tmp_path / "b", channels_of(tiny, tokenizer, **more), varied, **steps)
    again.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-2"))
    first, second = weights(whole), weights(again)
    assert all(torch.equal(first[name], second[name]) for name in first)

    (tmp_path / "a" / "checkpoint-2" / STATE_FILE).unlink()
    other = trainer_of(tiny, tmp_path / "c", channels_of(tiny, tokenizer, **more), varied, **steps)
    with pytest.raises(ValueError, match=f"has no {STATE_FILE}"):
        other.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-2"))


def test_a_hint_that_holds_the_answer_moves_the_model_without_it(
    tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    model, pad_id = model_of(tiny), tokenizer.pad_token_id
    rows = hint_rows(8)
    taught = encode_hint_rows(rows, tokenizer, LENGTH).examples
    own = [{**row, "completion": [{"role": "assistant", "content": "Done."}]} for row in rows]
    said = encode_hint_rows(own, tokenizer, LENGTH).examples
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):  # the answer after the hint, something else without it
        loss = nll(model, collate_hints(taught[:6], pad_id), "hinted_")
        loss = loss + nll(model, collate_hints(said[:6], pad_id), "student_")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def log_prob(examples: list[Any]) -> float:
        with torch.no_grad():
            return -nll(model, collate_hints(examples, pad_id), "student_").item()

    def kl(examples: list[Any]) -> float:
        with torch.no_grad():
            return compose_loss(model, collate_hints(examples, pad_id), 1.0, 0.0)[0].item()

    folder = tmp_path / "warm"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    seen, unseen = taught[:6], taught[6:]
    before = log_prob(unseen), kl(seen), kl(unseen)
    channels = Channels(hints=seen, alpha_sdpo=1.0, batch_size=6, settings={"jsd_beta": 0.0})
    trainer = trainer_of(folder, tmp_path / "run", channels, max_steps=60, learning_rate=2e-4)
    trainer.train()
    model = trainer.model.eval()
    assert log_prob(unseen) > before[0] + 0.3
    assert kl(seen) < 0.5 * before[1]
    assert kl(unseen) < before[2]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("sdpo", {"jsd_beta": 0.0}), ("replay", {"dpo_variant": "simpo"}), ("replay", {"dpo_variant": "dpo"})],
)
def test_a_channel_alone_lowers_its_loss_on_rows_it_never_saw(
    tiny: Path, tokenizer: Any, tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    pad_id, alone = tokenizer.pad_token_id, {"sdpo": (1.0, 0.0), "replay": (0.0, 1.0)}[name]
    hints = encode_hint_rows(hint_rows(14), tokenizer, LENGTH).examples
    pairs = encode_pair_rows(pair_rows(14), tokenizer, LENGTH).examples
    reference = ReferenceLogProbs(model_of(tiny).eval(), "tiny", pad_id)
    parts = [slice(0, 6), slice(6, 12), slice(12, 14)]  # two batches, and rows that are in neither

    def losses(model: Any) -> list[float]:
        found = []
        for part in parts:
            given = collate_hints(hints[part], pad_id) | collate_pairs(pairs[part], pad_id)
            with torch.no_grad():
                total, _ = compose_loss(model.eval(), given | reference.of(pairs[part]), *alone, **settings)
            found.append(total.item())
        return found

    before = losses(model_of(tiny))
    channels = Channels(
        hints=hints[:12],
        pairs=pairs[:12],
        alpha_sdpo=alone[0],
        beta_replay=alone[1],
        batch_size=6,
        reference=reference,
        settings=settings,
    )
    trainer = trainer_of(tiny, tmp_path, channels, max_steps=20, learning_rate=1e-3)
    trainer.train()
    for after, first in zip(losses(trainer.model), before, strict=True):
        assert after < 0.8 * first


def test_rows_that_do_not_fit_are_left_out_and_counted(tokenizer: Any) -> None:
    rows = hint_rows(3)
    rows[1]["prompt"] = [{"role": "user", "content": "long " * 200}]
    rows[2]["completion"] = [{"role": "assistant", "content": "", "tool_calls": [{"function": "none"}]}]
    found = encode_hint_rows(rows, tokenizer, LENGTH)
    assert [each.name for each in found.examples] == ["s0"]
    assert found.dropped == {f"longer than {LENGTH} tokens": 1, "the chat template refuses it": 1}
    [example] = found.examples
    assert example.student[1] == example.hinted[1]
    assert len(example.hinted[0]) > len(example.student[0])


def test_reference_values_are_of_the_reference_and_kept_by_content(
    tiny: Path, tokenizer: Any, tmp_path: Path
) -> None:
    pairs = encode_pair_rows(pair_rows(3), tokenizer, LENGTH).examples
    path = tmp_path / "reference.jsonl"
    first = ReferenceLogProbs(model_of(tiny), "tiny", tokenizer.pad_token_id, path)
    values = first.of([pairs[0], pairs[1], pairs[0]])
    assert first.computed == 2
    chosen = values["reference_chosen_logps"]
    assert chosen[0] == chosen[2] != chosen[1]
    assert (chosen < -1).all()
    context, said = pairs[1].chosen
    logits = model_of(tiny)(torch.tensor([[*context, *said]])).logits[0].log_softmax(-1)
    whole = sum(logits[len(context) + place - 1, token].item() for place, token in enumerate(said))
    assert chosen[1].item() == pytest.approx(whole, rel=1e-5)

    again = ReferenceLogProbs(model_of(tiny), "tiny", tokenizer.pad_token_id, path)
    assert torch.equal(again.of(pairs[:2])["reference_chosen_logps"], chosen[:2])
    assert again.computed == 0
    other = ReferenceLogProbs(model_of(tiny), "another model", tokenizer.pad_token_id, path)
    other.of(pairs[:1])
    assert other.computed == 1


def test_a_stream_passes_over_all_examples_and_goes_on_where_it_stopped() -> None:
    stream = ExampleStream(list(range(5)), 2, seed=1)
    drawn = [number for _ in range(5) for number in stream.draw()]
    assert sorted(drawn[:5]) == sorted(drawn[5:]) == list(range(5))
    later = ExampleStream(list(range(5)), 2, seed=1, position=3)
    assert later.draw() == drawn[6:8]
    parts = [ExampleStream(list(range(5)), 1, seed=1, process=rank, processes=2) for rank in (0, 1)]
    assert [number for _ in range(5) for part in parts for number in part.draw()] == drawn
    with pytest.raises(ValueError, match="no examples"):
        ExampleStream([], 2, seed=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha_sdpo": 0.1, "hints": ()}, r"alpha_sdpo is 0\.1 and there are no examples"),
        ({"beta_replay": 0.1, "pairs": ()}, r"beta_replay is 0\.1 and there are no examples"),
        ({"beta_replay": 0.1, "reference": None}, "there is no reference; give one, or take 'simpo'"),
        ({"alpha_sdpo": -1.0}, r"alpha_sdpo is -1\.0; it must be 0 or more"),
    ],
)
def test_bad_channels_are_one_clear_error(
    tiny: Path, tokenizer: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        channels_of(tiny, tokenizer, **given)


def test_a_loss_that_is_no_number_names_its_batch(tiny: Path, tokenizer: Any, tmp_path: Path) -> None:
    channels = channels_of(tiny, tokenizer, alpha_sdpo=1.0, batch_size=1)
    trainer = trainer_of(tiny, tmp_path, channels, max_steps=1)
    with torch.no_grad():
        trainer.model.model.norm.weight.fill_(float("nan"))
    trainer.current_gradient_accumulation_steps = 1  # `train` sets it
    with pytest.raises(TrainingError, match=r"the loss of channel sdpo is nan on the batch s\d;"):
        trainer._add_channels(torch.zeros(()), trainer.model)


def test_an_infinite_reward_ends_the_training(tiny: Path, tokenizer: Any, tmp_path: Path) -> None:
    def divided(completions: list[Any], **_: Any) -> list[float]:
        return [float("inf"), *[1.0] * (len(completions) - 1)]

    trainer = trainer_of(tiny, tmp_path, channels_of(tiny, tokenizer), divided, max_steps=2)
    before = {name: value.clone() for name, value in weights(trainer).items()}
    with pytest.raises(TrainingError, match=r"a reward of divided is infinite at step 0; expected finite"):
        trainer.train()
    assert all(torch.equal(before[name], value) for name, value in weights(trainer).items())


def test_a_model_that_calls_no_tool_is_a_note_once() -> None:
    from types import SimpleNamespace

    def log(callback: SilentToolsCallback, *frequencies: float) -> None:
        for step, frequency in enumerate(frequencies, 1):
            state = SimpleNamespace(global_step=step)
            callback.on_log(None, state, None, {"tools/call_frequency": frequency})

    silent, notes = list[str](), list[str]()
    log(SilentToolsCallback(3, silent), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    [said] = silent
    assert said.startswith("the model called no tool in 3 steps, so it learns nothing from rewards of tools")
    log(SilentToolsCallback(3, notes), 0.0, 0.0, 0.25, 0.0, 0.0, 0.0)
    SilentToolsCallback(1, notes).on_log(None, None, None, {"loss": 0.5})  # a training without tools
    assert notes == []


@pytest.mark.parametrize("wrapper", ["taid", "entropy_opd"])
def test_t_of_taid_rises_from_its_first_value_to_one(
    tiny: Path, tokenizer: Any, tmp_path: Path, wrapper: str
) -> None:
    settings = {"sdpo_wrapper": wrapper}
    channels = channels_of(tiny, tokenizer, alpha_sdpo=0.5, taid_start=0.4, settings=settings)
    trainer = trainer_of(tiny, tmp_path, channels, max_steps=4)
    trainer.train()
    assert len(logged(trainer, "loss/sdpo_kl")) == 4
    reached = []
    for step in range(5):
        trainer.state.global_step = step
        reached.append(trainer.loss_settings.get("taid_t"))
    expected = [0.4, 0.55, 0.7, 0.85, 1.0] if wrapper == "taid" else [None] * 5
    assert reached == (pytest.approx(expected) if wrapper == "taid" else expected)


@pytest.mark.parametrize("processes", [2])
def test_two_processes_learn_what_one_does(tiny: Path, tmp_path: Path, processes: int) -> None:
    """A batch of two examples in one process, and one of one in each of two: the same weights."""
    for count in (1, processes):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={count}"]
        command += ["--master-addr=127.0.0.1", f"--master-port={port}"]
        script = Path(__file__).parent.parent / "support" / "composer_process.py"
        command += [str(script), str(tiny), str(tmp_path / str(count))]
        subprocess.run(command, check=True, timeout=600)
    one, two = (torch.load(tmp_path / str(count) / "weights.pt") for count in (1, processes))
    start = dict(model_of(tiny).named_parameters())
    assert any((one[name] - start[name]).abs().max() > 1e-3 for name in one)
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-4, atol=2e-6)
