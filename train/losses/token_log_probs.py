"""Log probabilities of sampled tokens."""

# pyright: reportMissingImports=false

from torch import Tensor

from tracemill.train.losses.tensor_checks import as_keep, check_shape, full_precision, kept_rows
from tracemill.train.losses.vocabulary_sums import CHUNK_SIZE, at_rows, log_normalizers, spread_over_tokens


def token_log_probs(
    logits: Tensor, token_ids: Tensor, mask: Tensor | None = None, *, chunk_size: int | None = CHUNK_SIZE
) -> Tensor:
    """Return log softmax(logits) at `token_ids`, `[...]`, in nats; 0 where mask is 0.

    logits: `[..., V]`, of the token at the same place in token_ids, `[...]`: shift one of them before. mask:
    `[...]`, 0 for a token that does not count, whose logits and id have no effect. chunk_size: entries of the
    vocabulary at a time.
    """
    check_shape("token_ids", token_ids, logits.shape[:-1])
    keep = as_keep(mask, token_ids.shape)
    rows = kept_rows(keep)
    if keep is not None:
        token_ids = token_ids.where(keep, 0)  # the others may hold no id at all, such as -100
    ((top,), (log_sum,)) = log_normalizers((logits,), rows, chunk_size=chunk_size)
    chosen = full_precision(at_rows(logits.gather(-1, token_ids[..., None]), rows)).squeeze(1)
    log_probs = chosen - top - log_sum
    return spread_over_tokens(log_probs, rows, token_ids.shape)
