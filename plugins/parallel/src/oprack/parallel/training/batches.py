"""Data of ranks: which examples and batches a rank has, seeds, and ranks whose data end at different times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
from oprack.data.dataset import Sampler, TokenBatchSampler
from oprack.eager_tensor.devices import RANDOM
from oprack.eager_tensor.devices import seed as seed_of_process
from oprack.errors import InvalidArgumentError
from oprack.parallel.communicator import Communicator
from oprack.parallel.world import world

T = TypeVar("T")
ENDS = ("repeat", "drop", "uneven")


def seed(value: int, own: bool = True, communicator: Communicator | None = None) -> None:
    """Restart the random numbers of ops on all ranks, from the seed of the first one; collective.

    Args:
        value: The seed; that of rank 0 counts.
        own: Whether each rank draws numbers of its own, as for dropout of batches of its own; rank 0 draws those of
            one process. With False all ranks draw the same, as global tensors need it.
        communicator: The ranks; default: all.
    """
    ranks = communicator or world()
    first = int(ranks.broadcast(np.array([value], np.int64))[0])
    seed_of_process(first)
    if own and ranks.rank:
        RANDOM.load_state({"seed": int(RANDOM.generator(f"rank {ranks.rank}").integers(2**63)), "draws": {}})


class RankSampler(Sampler):
    """Numbers of a rank's examples, for a DataLoader: example k goes to rank k modulo the number of ranks.

    Args:
        dataset: The dataset, the same on all ranks, or its size.
        shuffle: Whether the order is random, another one each loop. Rank 0 draws it, as `oprack.seed` fixes there, so
            each loop begins with one small message, and every rank has to begin it.
        ends: What is done where examples can't be dealt out evenly. "repeat": the first ones come again, so that all
            ranks have as many. "drop": the last ones are left out. "uneven": some ranks have one more; see
            `even_batches`.
        communicator: The ranks; default: all.

    Raises:
        InvalidArgumentError: `ends` is another word.
    """

    def __init__(
        self,
        dataset: Any,
        shuffle: bool = False,
        ends: Literal["repeat", "drop", "uneven"] = "repeat",
        communicator: Communicator | None = None,
    ) -> None:
        super().__init__(range(dataset) if isinstance(dataset, int) else dataset)
        if ends not in ENDS:
            raise InvalidArgumentError(f"RankSampler: ends is {ends!r}; expected one of {', '.join(ENDS)}")
        self.shuffle, self.ends = shuffle, ends
        self._ranks = communicator or world()

    def __iter__(self) -> Iterator[int]:
        order, ranks = _order(len(self.data_source), self.shuffle, self._ranks), self._ranks
        mine = order[ranks.rank :: ranks.size]
        return iter([*mine, *order[:1]][: len(self)])

    def __len__(self) -> int:
        size, ranks = len(self.data_source), self._ranks
        if self.ends == "uneven":
            return len(range(ranks.rank, size, ranks.size))
        return size // ranks.size if self.ends == "drop" else -(-size // ranks.size)


class RankTokenBatchSampler(TokenBatchSampler):
    """As TokenBatchSampler, of a rank: all ranks have as many batches, and in each step about as many tokens.

    The examples of a step are as many as have `max_tokens` a rank; the longest ones are dealt out first, each to the
    rank that has the fewest tokens. Ranks have different numbers of examples in a step: multiply the loss by
    `rank_weight(rows)`.

    Args:
        lengths: How many tokens each example has, the same on all ranks.
        max_tokens: How many a batch of a rank has, about: examples are not cut.
        shuffle: Whether the order is random, another one each loop; see RankSampler.
        drop_last: Whether the examples of a last step that others could be added to are left out.
        communicator: The ranks; default: all.

    Raises:
        InvalidArgumentError: max_tokens is below 1, lengths are no integers of at least 0, or fewer than ranks.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        max_tokens: int,
        shuffle: bool = False,
        drop_last: bool = False,
        communicator: Communicator | None = None,
    ) -> None:
        super().__init__(lengths, max_tokens, drop_last=drop_last)
        self._shuffle, self._ranks = shuffle, communicator or world()
        if len(self.lengths) < self._ranks.size:
            raise InvalidArgumentError(
                f"RankTokenBatchSampler: {len(self.lengths)} examples for {self._ranks.size} ranks; expected at least "
                "one for each, since no batch may be empty"
            )

    def __iter__(self) -> Iterator[list[int]]:
        for step in self._steps():
            yield self._dealt(step)

    def __len__(self) -> int:
        if self._shuffle:
            raise TypeError("RankTokenBatchSampler has no len() with shuffle=True: it depends on the order")
        return sum(1 for _ in self._steps())

    def _steps(self) -> Iterator[list[int]]:
        """The examples that all ranks together have in each step, at least one for each rank."""
        ranks, most = self._ranks.size, self.max_tokens * self._ranks.size
        step, following, tokens = list[int](), list[int](), 0
        for k in _order(len(self.lengths), self._shuffle, self._ranks):
            length = int(self.lengths[k])
            if len(following) >= ranks and tokens + length > most:
                if step:
                    yield step
                step, following, tokens = following, [], 0
            following.append(k)
            tokens += length
        if self.drop_last:
            following = []
        if following and len(following) < ranks:  # too few for a step of their own
            step, following = step + following, []
        yield from (s for s in (step, following) if s)

    def _dealt(self, step: Sequence[int]) -> list[int]:
        """This rank's examples of a step, in their order."""
        tokens = [(0, 0, r) for r in range(self._ranks.size)]  # (tokens, examples, rank)
        mine = []
        for k in sorted(step, key=lambda k: -int(self.lengths[k])):
            at = min(range(len(tokens)), key=tokens.__getitem__)
            have, count, r = tokens[at]
            tokens[at] = have + int(self.lengths[k]), count + 1, r
            if r == self._ranks.rank:
                mine.append(k)
        return [k for k in step if k in set(mine)]


def _order(size: int, shuffle: bool, ranks: Communicator) -> list[int]:
    """Numbers of examples in the order of a loop, the same on all ranks; collective if it is random."""
    if not shuffle:
        return list(range(size))
    drawn = int(RANDOM.generator("oprack.parallel.batches").integers(2**63)) if ranks.rank == 0 else 0
    drawn = int(ranks.broadcast(np.array([drawn], np.int64))[0])
    found: list[int] = np.random.Generator(np.random.Philox(key=np.uint64(drawn))).permutation(size).tolist()
    return found


def rank_weight(rows: int, communicator: Communicator | None = None) -> float:
    """What a rank multiplies its mean loss by, so that the mean over ranks is that over all rows; collective.

    Args:
        rows: Rows, or tokens, of this rank's batch; 0 for a rank that has no batch any more.
        communicator: The ranks; default: all.

    Returns:
        rows * ranks / rows of all ranks; 1.0 where all have as many.

    Raises:
        InvalidArgumentError: No rank has a row.
    """
    ranks = communicator or world()
    total = float(ranks.all_reduce(np.array([rows], np.float64))[0])
    if not total > 0:
        raise InvalidArgumentError(f"rank_weight: {rows} rows on this rank and {total:g} on all; expected at least one")
    return rows * ranks.size / total


@overload
def even_batches(batches: Iterable[T], communicator: Communicator | None = None) -> Iterator[T]: ...
@overload
def even_batches(
    batches: Iterable[T], communicator: Communicator | None = None, *, until: Literal["first", "last"]
) -> Iterator[T | None]: ...
def even_batches(
    batches: Iterable[T], communicator: Communicator | None = None, *, until: str = "first"
) -> Iterator[T | None]:
    """The batches of this rank for as long as every rank has one, or any; collective, one small message a batch.

    A rank that goes on while another has come to the end of its data waits for it in the next sum of gradients.

    Args:
        batches: Of this rank.
        communicator: The ranks; default: all.
        until: "first": the loop ends on all ranks when the first one has no batch left. "last": it ends when the last
            one has none; until then the others get None, and call `average_gradients()` of their DataParallel or Zero
            in place of a forward and a backward pass, and the optimizer's step as ever.

    Yields:
        The batches.

    Raises:
        InvalidArgumentError: `until` is another word.
    """
    if until not in ("first", "last"):
        raise InvalidArgumentError(f"even_batches: until is {until!r}; expected 'first' or 'last'")
    return _even(iter(batches), communicator or world(), "min" if until == "first" else "max")


def _even(batches: Iterator[T], ranks: Communicator, op: str) -> Iterator[T | None]:
    nothing = object()
    while True:
        batch = next(batches, nothing)
        if not ranks.all_reduce(np.array([batch is not nothing], np.uint8), op)[0]:
            return
        yield None if batch is nothing else batch  # type: ignore[misc]
