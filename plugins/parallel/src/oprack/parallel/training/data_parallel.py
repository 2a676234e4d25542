"""DataParallel: each rank runs the module on data of its own, and gradients are means over the ranks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from oprack.autograd.after_backward import after_backward
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import context
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import CollectiveError
from oprack.parallel.communicator import Communicator
from oprack.parallel.sparse_rows import gather_rows
from oprack.parallel.training.buckets import Bucket, bucket_bytes, buckets
from oprack.parallel.world import world
from oprack.tensor import SelectedRows

if TYPE_CHECKING:
    from oprack.nn.module import Module

_HINT = (
    "Where ranks have other numbers of batches, loop over parallel.even_batches(batches); a rank whose loss uses no "
    "parameter of the module calls average_gradients() of its DataParallel after backward. "
)


class DataParallel:
    """A module of which each rank has a copy: called on the rank's own data, it trains as one on all of the data.

    Parameters and buffers become those of rank 0. When `backward` returns, gradients are means over the ranks, so where
    the loss is a mean and each rank has as many rows, they are those of one rank with all rows. Tensors stay of this
    process alone, so sequences with LoD and sparse gradients work as ever. Every rank must call backward as often, for
    which there is `parallel.even_batches`. A parameter that only some ranks used counts as zero on the others; a rank
    whose loss uses no parameter of the module calls `average_gradients()` after its backward.

    Args:
        module: The module; it may be called through this object or by itself.
        bucket_mb: Gradients travel together in messages of about so many MiB.
        communicator: The ranks; default: all.

    Attributes:
        module: The module.

    Raises:
        CollectiveError: The modules of the ranks differ in names, shapes or dtypes.
        InvalidArgumentError: The bucket is not larger than 0.
    """

    def __init__(self, module: Module, bucket_mb: float = 4.0, communicator: Communicator | None = None) -> None:
        self._bytes = bucket_bytes(bucket_mb, type(self).__name__)
        self.module = module
        self._home = world()
        self._world = communicator or self._home
        # Backward makes the gradients of the last layers first.
        self._parameters: list[Tensor] = list(reversed(module.parameters()))
        self._on = True
        self._done: dict[int, weakref.ref[Tensor]] = {}  # position -> the gradient that was averaged last
        self._dense: tuple[bytes, list[Bucket]] = b"", []  # the buckets of the last pass, and for which parameters
        copy_from_first("DataParallel", [*module.named_parameters(), *module.named_buffers()], self._world)
        after_backward(calling(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "module":  # not set yet
            raise AttributeError(name)
        return getattr(self.module, name)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward passes inside stay this rank's own; the next pass outside averages what added up."""
        self._on = False
        try:
            yield
        finally:
            self._on = True

    def average_gradients(self) -> None:
        """Average the gradients over the ranks now, collective; `backward` does so by itself where it made some.

        A rank that has none, since its loss did not use the module, calls it when the others call backward.
        """
        parameters = self._parameters
        # A parameter that only some ranks used counts as zero on the others.
        flags = np.array(
            [
                [p._grad is not None for p in parameters],
                [p._grad is not None and p._grad.is_sparse for p in parameters],
            ],
            np.uint8,
        )
        self._world.hint = _HINT
        present, sparse = self._world.all_reduce(flags, "max")
        self._world.hint = ""
        for p, rows in zip(parameters, sparse, strict=True):
            if rows:
                with context(p.place).activate():
                    self._average_rows(p)
        dense = present & ~sparse
        key = dense.tobytes()
        if self._dense[0] != key:
            chosen = [p for p, there in zip(parameters, dense, strict=True) if there]
            self._dense = key, list(buckets(chosen, self._bytes))
        for bucket in self._dense[1]:
            with context(bucket.tensors[0].place).activate():
                self._average(bucket)
        self._done = {k: weakref.ref(p._grad) for k, p in enumerate(parameters) if p._grad is not None}

    def _average(self, bucket: Bucket) -> None:
        values = [None if p._grad is None else p._grad._value for p in bucket.tensors]
        mean = self._world.all_reduce(bucket.joined(values, 1.0 / self._world.size), in_place=True)
        for p, value in zip(bucket.tensors, bucket.views(mean), strict=True):
            p._grad = new_tensor(value, meta_of_value(value, p.place))

    def _average_rows(self, p: Tensor) -> None:
        gradient = p._grad
        if gradient is None:
            value = np.zeros_like(p._value, shape=(0, *p._value.shape[1:]))
            rows = SelectedRows(np.zeros(0, np.int64), value, p._value.shape[0])
        else:
            rows = gradient._value
        found = gather_rows(rows, self._world)
        found.value *= np.asarray(1.0 / self._world.size, found.value.dtype)
        p._grad = new_tensor(found, meta_of_value(found, p.place))

    def after_backward(self) -> None:
        """Average, unless no gradient of this module is new, as after the backward pass of another one."""
        # Ranks may be threads, each with a world and a module of its own.
        if not self._on or self._world.size == 1 or world() is not self._home:
            return
        if any(p._grad is not None and not self._is_done(k, p._grad) for k, p in enumerate(self._parameters)):
            self.average_gradients()

    def _is_done(self, k: int, gradient: Tensor) -> bool:
        done = self._done.get(k)
        return done is not None and done() is gradient


class _Waiting(Protocol):
    def after_backward(self) -> None: ...


def calling(owner: _Waiting) -> Callable[[], bool]:
    """What calls `owner.after_backward()` for as long as anybody has the owner."""
    reference = weakref.ref(owner)

    def call() -> bool:
        found = reference()
        if found is None:
            return False
        found.after_backward()
        return True

    return call


def copy_from_first(owner: str, members: Sequence[tuple[str, Tensor]], ranks: Communicator) -> None:
    """Give the tensors of every rank the values of rank 0.

    Args:
        owner: Who asks, for messages.
        members: (path, tensor).
        ranks: The ranks.

    Raises:
        CollectiveError: Paths, shapes or dtypes differ between ranks.
    """
    facts = ranks.gather_facts([[path, str(t.dtype), list(t.shape)] for path, t in members])
    for rank, other in enumerate(facts):
        for k in range(max(len(other), len(facts[0]))):
            mine, its = (f[k] if k < len(f) else None for f in (facts[0], other))
            if mine != its:
                raise CollectiveError(
                    f"{owner}: rank 0 has {_member(mine)} where rank {rank} has {_member(its)}; expected the same "
                    "module on every rank: look for settings that depend on the rank"
                )
    for _, tensor in members:
        tensor._replace(ranks.broadcast(tensor._value), tensor._meta.without_grad, owner)


def _member(fact: Any) -> str:
    return "nothing" if fact is None else f"{fact[0]!r} {fact[1]}{fact[2]}"
