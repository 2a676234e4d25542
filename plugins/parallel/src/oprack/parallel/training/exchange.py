"""Exchange: gradients travel to other ranks in buckets while the backward pass goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from oprack.autograd.followers import follow_backward, follow_leaf
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import context
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import CollectiveError
from oprack.parallel.communicator import Communicator
from oprack.parallel.training.buckets import Bucket
from oprack.parallel.transfers import Transfer, waited
from oprack.parallel.world import world

_DENSE, _SPARSE, _LEFT = 1, 2, 4
"""Of a parameter, in a pass: it has a dense or a sparse gradient on this rank, and one that no planned bucket took."""

HINT = (
    "Where ranks have other numbers of batches, loop over parallel.even_batches(batches); a rank whose loss uses no "
    "parameter of the module calls average_gradients() after backward. "
)


class Exchange(ABC):
    """Reduces gradients over ranks that each have gradients of their own, bucket by bucket, while backward goes on.

    A *plan* says which buckets a pass sends, in which order: those of the parameters that had a dense gradient on some
    rank in the last pass, in the order in which the first rank had them ready. A bucket is sent when all of its
    gradients are there and the buckets before it are sent. What is not there when the pass ends counts as zero, so all
    ranks send the same in the same order, whatever each of them used. Then they tell each other which gradients there
    were, and reduce those that nobody had planned for: all of the first pass, sparse ones, and such as came to a
    parameter again after its bucket was sent.

    Gradients on their way are not in `grad` of their parameters. Where a pass fails on a rank, the rank still does its
    part, and the others raise.

    Args:
        owner: For messages.
        parameters: Whose gradients are reduced, in the same order on all ranks.
        ranks: The ranks.
    """

    def __init__(self, owner: str, parameters: Sequence[Tensor], ranks: Communicator) -> None:
        self._owner, self.parameters = owner, list(parameters)
        self._home, self._ranks = world(), ranks.beside()
        self.on = True
        """Whether passes reduce what they make."""
        self._positions = {id(p): k for k, p in enumerate(self.parameters)}
        self._plan: list[Bucket] = []
        self._bucket_of: dict[int, int] = {}  # position -> number of the bucket in the plan that waits for it
        self._reset()
        follow_backward(self, self.parameters)

    def _reset(self) -> None:
        """Forget the last pass."""
        self._missing = Counter(self._bucket_of.values())
        self._sent: list[tuple[Bucket, Transfer]] = []
        self._given: set[int] = set()  # positions whose gradient is on its way
        self._order: dict[int, None] = {}  # positions in the order in which gradients became ready

    # What the owner does ----------------------------------------------------------------------------------------------
    @abstractmethod
    def _buckets(self, positions: Sequence[int]) -> list[Bucket]:
        """Buckets for the gradients of some parameters, given in the order in which they become ready."""

    @abstractmethod
    def _send(self, bucket: Bucket, gradients: Sequence[Tensor | None]) -> Transfer:
        """Start to reduce gradients, None for zeros."""

    @abstractmethod
    def _take(self, bucket: Bucket, value: Any, present: Sequence[bool]) -> None:
        """Give what came back to the parameters that have a gradient on some rank."""

    @abstractmethod
    def _reduce_rows(self, p: Tensor) -> None:
        """Reduce the gradient of a parameter that is sparse on some rank; collective."""

    def _is_sparse(self, gradient: Tensor) -> bool:
        """Whether a gradient has to be reduced by rows."""
        return gradient.is_sparse

    # During the pass --------------------------------------------------------------------------------------------------
    def gradient_ready(self, tensor: Tensor) -> None:
        """See Follower."""
        position = self._positions[id(tensor)]
        # Ranks may be threads, each with a world and parameters of its own.
        if not self.on or position in self._order or world() is not self._home:
            return
        self._order[position] = None
        number = self._bucket_of.get(position)
        if number is not None:
            self._missing[number] -= 1
            while len(self._sent) < len(self._plan) and not self._missing[len(self._sent)]:
                self._send_next()
        if self._sent:
            self._sent[-1][1].test()  # engines may go on inside of calls alone

    def _send_next(self) -> None:
        bucket = self._plan[len(self._sent)]
        self._sent.append((bucket, self._send_gradients(bucket)))

    def _send_gradients(self, bucket: Bucket) -> Transfer:
        gradients: list[Tensor | None] = []
        for p in bucket.tensors:
            gradient = p._grad
            if gradient is not None and self._is_sparse(gradient):
                gradient = None
            if gradient is not None:
                self._given.add(self._positions[id(p)])
                p._grad = None
            gradients.append(gradient)
        with context(bucket.tensors[0].place).activate():
            return self._send(bucket, gradients)

    # At its end -------------------------------------------------------------------------------------------------------
    def after_backward(self, error: BaseException | None) -> None:
        """See Follower."""
        if not self.on or world() is not self._home:
            return
        used = self._order or any(
            p._grad is not None and self._is_new(k, p._grad) for k, p in enumerate(self.parameters)
        )
        if error is None:
            if used:
                self.finish()
        elif isinstance(error, CollectiveError) or not isinstance(error, Exception):
            self._reset()  # ranks are at odds already, or this one is to end
        elif used:
            self.finish(failed=True)

    def _is_new(self, position: int, gradient: Tensor) -> bool:
        """Whether a gradient that is there after a pass may have come in it, though nobody was told."""
        return True

    def finish(self, failed: bool = False) -> None:
        """Reduce what is left of a pass, and give all gradients to the parameters; collective.

        Args:
            failed: Whether this rank's pass failed, which the others are told.

        Raises:
            CollectiveError: It failed on another rank, or a gradient is dense on one rank and sparse on another.
        """
        while len(self._sent) < len(self._plan):
            self._send_next()
        sent, given, order = self._sent, self._given, list(self._order)
        self._reset()
        state = self._state(given)
        state[-1] = failed
        found = self._of_all(state)
        if found[-1]:
            waited([transfer for _, transfer in sent])
            if failed:
                return
            raise CollectiveError(
                f"{self._owner}: the backward pass of another rank failed, so no gradient is that of all ranks; what "
                "that rank raised says why"
            )
        dense, sparse, left = ((found[:-1] & flag) > 0 for flag in (_DENSE, _SPARSE, _LEFT))
        self._require_one_sort(dense & sparse)
        for bucket in self._buckets(np.flatnonzero(left).tolist()):
            sent.append((bucket, self._send_gradients(bucket)))
        for bucket, transfer in sent:
            value = transfer.wait()
            with context(bucket.tensors[0].place).activate():
                self._take(bucket, value, [bool(dense[self._positions[id(p)]]) for p in bucket.tensors])
        for k in np.flatnonzero(sparse).tolist():
            with context(self.parameters[k].place).activate():
                self._reduce_rows(self.parameters[k])
        self._plan_next(dense, order)
        for p in self.parameters:
            follow_leaf(self, p)

    def _state(self, given: Iterable[int]) -> np.ndarray:
        """What this rank has of each parameter's gradient, by flags."""
        state = np.zeros(len(self.parameters) + 1, np.uint8)
        state[list(given)] = _DENSE
        for k, p in enumerate(self.parameters):
            if p._grad is not None:
                state[k] |= _SPARSE if self._is_sparse(p._grad) else _DENSE | _LEFT
        return state

    def _of_all(self, state: np.ndarray) -> np.ndarray:
        """The flags of all ranks together."""
        self._ranks.hint = HINT
        try:
            bits = self._ranks.start_all_reduce(np.unpackbits(state), "max").wait()
        finally:
            self._ranks.hint = ""
        return np.packbits(bits)

    def _require_one_sort(self, both: np.ndarray) -> None:
        for k in np.flatnonzero(both):
            raise CollectiveError(
                f"{self._owner}: the gradient of {self.parameters[k].describe()} is sparse on one rank and dense on "
                "another; expected one of both on all ranks"
            )

    def _plan_next(self, present: np.ndarray, order: Sequence[int]) -> None:
        """Plan the next pass by what this one had, unless it is planned so already."""
        chosen = set(np.flatnonzero(present).tolist())
        if chosen == self._bucket_of.keys():
            return
        mine = list(dict.fromkeys([*order, *range(len(self.parameters))]))
        first = self._ranks.broadcast(np.array(mine, np.int64)).tolist()
        self._plan = self._buckets([k for k in first if k in chosen])
        members = ((n, self._positions[id(p)]) for n, b in enumerate(self._plan) for p in b.tensors)
        self._bucket_of = {k: n for n, k in members if k in chosen}
        self._reset()


def add_gradient(p: Tensor, value: Any) -> Tensor:
    """Add an array to a tensor's gradient, or make it the gradient; returns the gradient."""
    total = value if p._grad is None else p._grad._value + value
    found = p._grad = new_tensor(total, meta_of_value(total, p.place))
    return found
