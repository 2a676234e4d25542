"""DataParallel: each rank runs the module on data of its own, and gradients are means over the ranks."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import CollectiveError, PreconditionNotMetError
from oprack.nn.parameter import DeferredParameter
from oprack.parallel.communicator import Communicator
from oprack.parallel.sparse_rows import gather_rows
from oprack.parallel.training.buckets import Bucket, bucket_bytes, buckets, for_reading
from oprack.parallel.training.exchange import Exchange, add_gradient
from oprack.parallel.transfers import Transfer
from oprack.parallel.world import world
from oprack.tensor import SelectedRows

if TYPE_CHECKING:
    from oprack.nn.module import Module


_LINE = 64
"""Elements."""


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
        PreconditionNotMetError: A parameter was made inside `oprack.nn.deferred()` and has no elements yet.
    """

    def __init__(self, module: Module, bucket_mb: float = 4.0, communicator: Communicator | None = None) -> None:
        size = bucket_bytes(bucket_mb, type(self).__name__)
        self.module = module
        ranks = communicator or world()
        members = [*module.named_parameters(), *module.named_buffers()]
        require_made("DataParallel", [t for _, t in members])
        copy_from_first("DataParallel", members, ranks)
        # Backward makes the gradients of the last layers first.
        self._means = _Means("DataParallel", list(reversed(module.parameters())), ranks, size)

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
        on, self._means.on = self._means.on, False
        try:
            yield
        finally:
            self._means.on = on

    def average_gradients(self) -> None:
        """Average the gradients over the ranks now, collective; `backward` does so by itself where it made some.

        A rank that has none, since its loss did not use the module, calls it when the others call backward.
        """
        if self._means.size > 1:
            self._means.finish()


class _Means(Exchange):
    """Means of gradients over the ranks."""

    def __init__(self, owner: str, parameters: Sequence[Tensor], ranks: Communicator, bucket_bytes: int) -> None:
        super().__init__(owner, parameters, ranks)
        self.size, self._bytes = ranks.size, bucket_bytes
        self.on = self.size > 1
        self._memory = self._memory_of_all() if self.on else {}
        self._homes: dict[int, Any] = {}  # id of a planned bucket -> where its means lie on all ranks
        self._done: dict[int, weakref.ref[Tensor]] = {}  # position -> the gradient that was averaged last

    def _buckets(self, positions: Sequence[int]) -> list[Bucket]:
        return list(buckets([self.parameters[k] for k in positions], self._bytes))

    def _send(self, bucket: Bucket, gradients: Sequence[Tensor | None]) -> Transfer:
        flat = bucket.flat([None if g is None else g._value for g in gradients])
        return self._ranks.start_all_reduce(flat, factor=1.0 / self.size, out=self._homes.get(id(bucket)))

    def _take(self, bucket: Bucket, value: Any, present: Sequence[bool]) -> None:
        at_home = id(bucket) in self._homes
        for p, mean, there in zip(bucket.tensors, bucket.views(value), present, strict=True):
            if there:
                if at_home and p._grad is None:
                    add_gradient(p, for_reading(mean))._lent = True
                else:
                    add_gradient(p, mean)

    def _memory_of_all(self) -> dict[tuple[str, str], Any]:
        """Memory for the means of each dtype and place, where all ranks can have one: each rank writes a part of them
        there, and none has to copy the parts of the others.
        """
        found = {}
        for key, some in itertools.groupby(sorted(self.parameters, key=_sort), _sort):
            members = list(some)
            whole = self._ranks.memory(sum(_room(p._value.size) for p in members), members[0]._value)
            if whole is not None:
                found[key] = whole
        return found

    def _plan_next(self, present: np.ndarray, order: Sequence[int]) -> None:
        before = self._plan
        super()._plan_next(present, order)
        if self._plan is before:
            return
        for p in self.parameters:
            if p._grad is not None:
                p._grad._keep()  # other means will lie there
        self._homes, ends = {}, Counter[Any]()
        for bucket in self._plan:
            key, size = _sort(bucket.tensors[0]), bucket.offsets[-1]
            if key in self._memory:
                self._homes[id(bucket)] = self._memory[key][ends[key] : ends[key] + size]
                ends[key] += _room(size)

    def _reduce_rows(self, p: Tensor) -> None:
        gradient = p._grad
        if gradient is None:
            value = np.zeros_like(p._value, shape=(0, *p._value.shape[1:]))
            rows = SelectedRows(np.zeros(0, np.int64), value, p._value.shape[0])
        else:
            rows = gradient._value
        found = gather_rows(rows, self._ranks)
        found.value *= np.asarray(1.0 / self.size, found.value.dtype)
        p._grad = new_tensor(found, meta_of_value(found, p.place))

    def finish(self, failed: bool = False) -> None:
        """See Exchange."""
        super().finish(failed)
        self._done = {k: weakref.ref(p._grad) for k, p in enumerate(self.parameters) if p._grad is not None}

    def _is_new(self, position: int, gradient: Tensor) -> bool:
        done = self._done.get(position)
        return done is None or done() is not gradient


def _sort(p: Tensor) -> tuple[str, str]:
    return str(p.dtype), str(p.place)


def _room(size: int) -> int:
    """Of so many elements, so that the next ones begin with a line of the caches."""
    return -(-size // _LINE) * _LINE


def require_made(owner: str, tensors: Iterable[Tensor]) -> None:
    """Raise PreconditionNotMetError where a parameter has no elements yet, since each rank needs all of them."""
    for tensor in tensors:
        if isinstance(tensor, DeferredParameter):
            raise PreconditionNotMetError(
                f"{owner}: {tensor.describe()} was made inside deferred() and has no elements yet, and every rank "
                'needs all of them; make those of its net first: net.to("cpu"). For a net that no rank can hold, give '
                f'each rank parts by parallel.to_global(net, placement, {{"*": "split(0)"}}), without {owner}'
            )


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
