"""Draw batches of rows that begin alike."""

# pyright: reportMissingImports=false

from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import Sampler

from tracemill.train.packing.token_tree import Ids, sort_by_tokens


class SharedPrefixSampler(Sampler[int]):
    """A sampler whose batches contain rows that share token prefixes.

    Batches come in an order drawn from the seed and the epoch; each epoch cuts them at other rows. The last
    batch may be smaller.
    """

    def __init__(self, rows: Sequence[Ids], batch: int, seed: int) -> None:
        self.order, self.batch, self.seed, self.epoch = sort_by_tokens(rows), batch, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Draw the order of this epoch from now on."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.order)

    def __iter__(self) -> Iterator[int]:
        """Yield the index of every row once."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        first = int(torch.randint(len(self.order), (1,), generator=generator))
        order = self.order[first:] + self.order[:first]
        batches = [order[begin : begin + self.batch] for begin in range(0, len(order), self.batch)]
        whole, rest = (batches[:-1], batches[-1:]) if len(batches[-1]) < self.batch else (batches, [])
        for place in torch.randperm(len(whole), generator=generator).tolist():
            yield from whole[place]
        for batch in rest:
            yield from batch
