"""Put the forward pass of packed rows in the place of TRL's over padded rows."""

# pyright: reportMissingImports=false

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
from trl.trainer.utils import FusedCausalLMOutput

from tracemill.train.packing.answer_scores import AnswerScores, score_answers
from tracemill.train.packing.token_tree import Ids, TokenTree, build_trees
from tracemill.train.packing.tree_attention import TREE_ATTENTION
from tracemill.train.packing.tree_masks import BLOCK, block_mask, dense_mask

TOLERANCE = 1e-3
"""Largest difference of a token's log probability to the plain path, in nats, in float32."""
MEAN_TOLERANCE = 0.03
"""The mean difference, in shorter types."""
_IGNORED = -100
_KNOWN = {"use_cache", "output_router_logits", "return_dict"}
"""Arguments that change nothing of a packed pass, or that it takes account of."""


class PackedForward:
    """The forward pass of a causal language model over the trees of its batches.

    `model` has TRL's fused head: `model(input_ids, attention_mask, labels=labels, fused_lm_head=True)`
    gives the log probabilities of the labels of padded rows `[B, L]`. After `install` the same call
    computes trees and gives the same figures. On its first batch it compares itself with the plain path. If
    they differ it uses the plain path from then on, and calls `on_fallback` with the reason. Other calls
    stay as they are.
    """

    def __init__(
        self,
        model: Any,
        max_tokens: int,
        on_fallback: Callable[[str], None],
        autocast: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self.model, self.max_tokens, self.on_fallback = model, max_tokens, on_fallback
        self.autocast = autocast
        self.plain = model.forward
        self.active, self.checked = True, False
        self.tokens = self.computed = 0
        """Tokens of rows so far, and of the trees computed in their place."""

    def install(self) -> None:
        """Replace the model's forward function."""

        @functools.wraps(type(self.model).forward)
        def forward(_: Any, *args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        self.model.forward = types.MethodType(forward, self.model)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the trees of a batch; any other call is passed to the plain model."""
        given = {key: value for key, value in kwargs.items() if value is not None}
        fused = given.pop("fused_lm_head", False)
        rows = [given.pop(name, None) for name in ("input_ids", "attention_mask", "labels")]
        ours = self.active and fused and not args and all(row is not None for row in rows)
        if not ours or not given.keys() <= _KNOWN:
            return self.plain(*args, **kwargs)
        router = bool(given.get("output_router_logits", _router_logits_of(self.model)))
        with self.autocast():
            if not self.checked:
                self.checked = True
                self._check(*rows)
            if self.active:
                return self._compute(*rows, router=router)
        return self.plain(*args, **kwargs)

    def _check(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> None:
        """Compare the log probabilities of a batch with those of the plain path, row by row."""
        problem, difference, limit = "", torch.zeros(()), TOLERANCE
        with torch.no_grad(), _evaluating(self.model):
            try:
                packed: Any = self._compute(input_ids, attention_mask, labels, router=False).log_probs
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, TypeError, ValueError, AttributeError) as error:
                problem = f"it failed on the first batch ({type(error).__name__})"
            else:
                rows = zip(input_ids, attention_mask, labels, strict=True)
                plain = torch.cat([self._plain_row(*row) for row in rows])
                apart = (packed - plain).abs().float()
                difference = apart.max()
                if _computes_in_short_type(self.model):
                    limit = MEAN_TOLERANCE
                    difference = apart.sum() / (labels[:, 1:] != _IGNORED).sum().clamp(min=1)
                if not difference <= limit:
                    problem = f"the first batch's log probabilities differ by {difference:.2g}, not {limit}"
        self.tokens = self.computed = 0
        if _any_process(bool(problem), input_ids.device):
            self.active = False
            self.on_fallback(problem or "another process found that its first batch differs")

    def _plain_row(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        """Return the log probabilities `[1, L - 1]` of one row, computed without its padding."""
        kept = attention_mask.bool()
        row = {"input_ids": input_ids[kept][None], "attention_mask": attention_mask[kept][None]}
        found = self.plain(**row, labels=labels[kept][None], use_cache=False, fused_lm_head=True).log_probs
        whole = found.new_zeros(len(input_ids))
        whole[kept.nonzero()[1:, 0]] = found[0]
        return whole[None, 1:]

    def _compute(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor, *, router: bool
    ) -> FusedCausalLMOutput:
        device, width = input_ids.device, labels.shape[1] - 1
        ids, kept, told = input_ids.cpu().numpy(), attention_mask.bool().cpu().numpy(), labels.cpu().numpy()
        trees = build_trees([row[seen] for row, seen in zip(ids, kept, strict=True)], self.max_tokens)
        hidden, targets, places, routers = [], [], [], []
        for tree in trees:
            outputs = self._run(tree, device, router)
            sources = []
            for number, path in tree.paths.items():
                columns = kept[number].nonzero()[0][1:]
                answer = told[number, columns] != _IGNORED
                sources.append(path[:-1][answer])  # the token before is the node before on the path
                targets.append(told[number, columns[answer]])
                places.append(number * width + columns[answer] - 1)
            hidden.append(outputs.last_hidden_state[0, _to(device, sources)])
            routers.append(outputs.router_logits if router else None)
            self.computed += len(tree)
        self.tokens += int(kept.sum())
        head = self.model.get_output_embeddings()
        scores = score_answers(head, torch.cat(hidden), _to(device, targets))
        counts = [torch.from_numpy(tree.counts).to(device) for tree in trees]
        aux_loss = _router_loss(self.model, routers, counts) if router else None
        return _as_padded(scores, _to(device, places), labels[:, 1:] != _IGNORED, aux_loss)

    def _run(self, tree: TokenTree, device: torch.device, router: bool) -> Any:
        """Run the backbone over a tree."""
        ids, depths, ends = (torch.from_numpy(each).to(device) for each in (tree.ids, tree.depths, tree.ends))
        if self.model.config._attn_implementation == TREE_ATTENTION:
            ids, depths, ends = _pad_to_blocks(ids, depths, ends)
            mask: Any = block_mask(ends)
        else:
            mask = dense_mask(ends, self.model.dtype)
        options = {"output_router_logits": True} if router else {}
        outputs = self.model.base_model(
            input_ids=ids[None], attention_mask=mask, position_ids=depths[None], use_cache=False, **options
        )
        outputs.last_hidden_state = outputs.last_hidden_state[:, : len(tree)]
        if router:
            outputs.router_logits = tuple(layer[: len(tree)] for layer in outputs.router_logits)
        return outputs


def _to(device: torch.device, parts: list[Ids]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)).to(device)


def _as_padded(
    scores: AnswerScores, places: Tensor, mask: Tensor, aux_loss: Tensor | None
) -> FusedCausalLMOutput:
    """Return figures of answer tokens in the shape `[B, L - 1]` of padded rows; all others are 0."""

    def spread(values: Tensor) -> Tensor:
        return values.new_zeros(mask.numel()).index_copy(0, places, values).view(mask.shape)

    log_probs, entropy, mean_logits, is_top1 = map(spread, scores)
    loss = -log_probs.sum() / mask.sum().clamp(min=1)
    return FusedCausalLMOutput(
        loss=loss,
        log_probs=log_probs,
        entropy=entropy,
        mean_logits=mean_logits,
        is_top1=is_top1,
        label_mask=mask,
        aux_loss=aux_loss,
    )


def _pad_to_blocks(ids: Tensor, depths: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Append nodes that only see themselves, up to a multiple of `BLOCK`."""
    more = -len(ids) % BLOCK
    own = torch.arange(len(ids) + 1, len(ids) + more + 1, device=ids.device)
    return torch.cat([ids, ids[:1].expand(more)]), torch.cat([depths, 0 * own]), torch.cat([ends, own])


def _router_logits_of(model: Any) -> bool:
    return bool(getattr(model.config.get_text_config(), "output_router_logits", False))


def _router_loss(model: Any, routers: list[Any], counts: list[Tensor]) -> Tensor:
    """Return the load-balancing loss over the tokens of all rows: a node counts once for each of its rows."""
    config = model.config.get_text_config()
    layers: Any = tuple(torch.cat(parts) for parts in zip(*routers, strict=True))
    weights: Any = torch.cat(counts)[None]
    loss: Any = load_balancing_loss_func(layers, config.num_experts, config.num_experts_per_tok, weights)
    return loss


def _computes_in_short_type(model: Any) -> bool:
    device = next(model.parameters()).device.type
    return model.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled(device)


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Switch every module to evaluation mode during the block, and restore its mode after it."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _any_process(found: bool, device: torch.device) -> bool:
    """Return whether any process of the training found it."""
    if not torch.distributed.is_initialized():
        return found
    flag = torch.tensor(int(found), device=device)
    torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX)
    return bool(flag.item())
