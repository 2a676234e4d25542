"""Zero: an optimizer of which each rank keeps a part of the state, and with stage 2 of the gradients as well."""

from __future__ import annotations

import inspect
import itertools
import weakref
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import context
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import CollectiveError, InvalidArgumentError, PreconditionNotMetError
from oprack.parallel.communicator import Communicator
from oprack.parallel.training.buckets import Bucket, bucket_bytes, buckets, for_reading
from oprack.parallel.training.data_parallel import copy_from_first, require_made
from oprack.parallel.training.exchange import Exchange, add_gradient
from oprack.parallel.transfers import Transfer, waited
from oprack.parallel.world import world

_COMPARED = 2
"""In so many first steps the gradients are compared among the ranks."""


class Zero:
    """An optimizer of which each of n ranks keeps the state of 1/n of the elements and updates these (ZeRO).

    Parameters lie one after the other in buckets, each bucket is split evenly over the ranks, and after a step the
    ranks gather the updated parameters. Numbers are those of the optimizer alone. `grad_clip` takes norms over all
    ranks, and `state_dict`, which all ranks must call, is that of one rank, for any number of ranks to load.

    Stage 1 takes the gradients as they are, so the module is to be in DataParallel, which makes them equal on all
    ranks. Stage 2 stands for DataParallel: parameters become those of rank 0, and when `backward` returns, each rank
    has its part of the means of the gradients and no more (`grad` of the parameters is None). It adds up over several
    passes.

    Args:
        optimizer: An optimizer of eager parameters whose updates go element by element, as SGD, Momentum and Adam.
            Sparse gradients become dense.
        stage: 1 or 2.
        bucket_mb: The size of a bucket in MiB.
        communicator: The ranks; default: all.

    Attributes:
        stage: The stage.

    Raises:
        InvalidArgumentError: The stage is another one, a parameter is global, or step() takes a closure.
        UnimplementedError: The optimizer takes norms of whole parameters, as Lamb.
        CollectiveError: Parameters differ in shapes or dtypes among the ranks.
        PreconditionNotMetError: The optimizer has no parameters, or one that was made inside `oprack.nn.deferred()` has
            no elements yet.
    """

    def __init__(
        self, optimizer: Any, stage: int = 1, bucket_mb: float = 4.0, communicator: Communicator | None = None
    ) -> None:
        kind = type(optimizer).__name__
        if stage not in (1, 2):
            raise InvalidArgumentError(
                f"Zero: stage is {stage!r}; expected 1 (state in parts) or 2 (gradients as well); parameters lie in "
                'parts with parallel.to_global(net, placement, {"*": "split(0)"})'
            )
        if not hasattr(optimizer, "updates") or len(inspect.signature(optimizer.step).parameters):
            raise InvalidArgumentError(
                f"Zero: got {kind}; expected an optimizer of oprack.optimizer whose step() takes no closure, such as "
                "Adam(1e-3, parameters=net.parameters())"
            )
        self._ranks = communicator or world()
        self.stage, self._optimizer = stage, optimizer
        whole: list[Tensor] = optimizer.updates.parameters
        require_made("Zero", whole)
        positions = {id(p): k for k, p in enumerate(whole)}
        self._buckets = list(buckets(whole, bucket_bytes(bucket_mb, "Zero")))
        self._positions = [[positions[id(p)] for p in b.tensors] for b in self._buckets]
        found = {
            id(p): spans for b in self._buckets for p, spans in zip(b.tensors, b.pieces(self._ranks.size), strict=True)
        }
        pieces = [found[id(p)] for p in whole]
        self._updates = optimizer.updates_in_parts(pieces, self._ranks, "Zero")
        self._whole = whole
        self._present: set[int] = set()  # positions of parameters that have a gradient on some rank, in stage 2
        self._compared = _COMPARED if self._ranks.size > 1 else 0
        self._beside = self._ranks.beside()
        ones = [self._beside.memory(b.offsets[-1], b.tensors[0]._value) for b in self._buckets]
        self._are_one = [one is not None for one in ones]
        self._flats = [b.empty() if one is None else one for b, one in zip(self._buckets, ones, strict=True)]
        lying = zip(self._buckets, self._flats, strict=True)
        homes = {id(p): home for b, flat in lying for p, home in zip(b.tensors, b.views(flat), strict=True)}
        self._updates.lie_in([homes[id(p)] for p in whole])
        self._homes = [for_reading(homes[id(p)]) for p in whole]
        copy_from_first("Zero", [(str(k), p) for k, p in enumerate(whole)], self._ranks)
        self._parts = _Parts("Zero", self) if stage == 2 else None

    def __getattr__(self, name: str) -> Any:
        if name == "_optimizer":  # not set yet
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    @property
    def parameter_list(self) -> Sequence[Tensor]:
        """The tensors whose gradients a step takes: the parameters, or in stage 2 this rank's parts of them."""
        found: list[Tensor] = self._whole if self.stage == 1 else self._updates.parameters
        return found

    @property
    def updates(self) -> Any:
        """The PartUpdates that step runs, whose state a Checkpointer writes and reads."""
        return self._updates

    def any_rank(self, found: bool) -> bool:
        """Whether something was found on any rank, such as a gradient that is not finite; collective."""
        return bool(self._ranks.all_reduce(np.array([found], np.uint8), "max")[0])

    # Steps ------------------------------------------------------------------------------------------------------------
    def step(self) -> None:
        """Update this rank's part of the parameters and gather those of the others; collective.

        Raises:
            PreconditionNotMetError: No parameter has a gradient.
            CollectiveError: In stage 1, ranks have different gradients.
        """
        if self.stage == 1:
            self._take_gradients()
        if not self._present:
            raise PreconditionNotMetError(
                f"Zero: no parameter of {type(self._optimizer).__name__} has a gradient; call backward() before step()"
            )
        if any(self._are_one):
            self._ranks.barrier()  # until then, other ranks may read the parameters
        self._updates.step()
        self._updates.forget_restored(self._present)
        gathered = []
        having = [n for n, positions in enumerate(self._positions) if not self._present.isdisjoint(positions)]
        for n in having:
            if not self._are_one[n]:
                bucket = self._buckets[n]
                with context(bucket.tensors[0].place).activate():
                    gathered.append(self._beside.start_all_gather(self._flats[n], bucket.counts(self._ranks.size)))
        waited(gathered)
        if any(self._are_one):
            self._ranks.barrier()  # until then, they may not have written their parts
        for k in itertools.chain.from_iterable(self._positions[n] for n in having):
            self._whole[k]._overwrite(self._homes[k], None, "Zero.step")
            self._updates.given_back(k)

    def _take_gradients(self) -> None:
        self._present = {k for k, p in enumerate(self._whole) if p.requires_grad and p._grad is not None}
        if self._compared:
            self._compared -= 1
            self._compare()
        for k, p in enumerate(self._whole):
            part = self._updates.parameters[k]
            if k in self._present:
                value = self._updates.elements(k, self._dense(p, p._grad))
                part._grad = new_tensor(value, meta_of_value(value, p.place))
            else:
                part._grad = None

    def _compare(self) -> None:
        """Raise CollectiveError where the gradients of the ranks are not the same bits."""
        here = [self._checksum(p) if k in self._present else None for k, p in enumerate(self._whole)]
        for rank, facts in enumerate(self._ranks.gather_facts(here)):
            for k, (mine, its) in enumerate(zip(here, facts, strict=True)):
                if mine != its:
                    raise CollectiveError(
                        f"Zero: ranks {self._ranks.rank} and {rank} have different gradients of "
                        f"{self._whole[k].describe()}; expected the mean over the ranks: put the module into "
                        "parallel.DataParallel, or use stage=2, which averages by itself"
                    )

    def _checksum(self, p: Tensor) -> int:
        value = self._dense(p, p._grad)
        value = value.get() if hasattr(value, "get") else value  # of a device
        return zlib.crc32(np.ascontiguousarray(value).tobytes())

    def _dense(self, p: Tensor, gradient: Tensor | None) -> Any:
        """The gradient of a parameter as an array."""
        assert gradient is not None
        if not gradient.is_sparse:
            return gradient._value
        if getattr(self._optimizer, "lazy_mode", False):
            raise InvalidArgumentError(
                f"Zero: {type(self._optimizer).__name__} has lazy_mode, which only sparse gradients know, and that of "
                f"{p.describe()} becomes dense here; make the optimizer with lazy_mode=False"
            )
        return gradient._value.to_dense()

    def average_gradients(self) -> None:
        """Take this rank's part of the means of the gradients now, in stage 2; collective.

        `backward` does so by itself where it made some. A rank that has none, since its loss did not use the parameters
        or its data have ended, calls it when the others call backward.

        Raises:
            InvalidArgumentError: The stage is 1, in which DataParallel averages.
        """
        if self._parts is None:
            raise InvalidArgumentError(
                "Zero.average_gradients: stage is 1; call average_gradients() of the DataParallel beside it"
            )
        self._parts.finish()

    def clear_grad(self) -> None:
        """Clear the gradients of all parameters."""
        self._updates.clear_grad()
        self._optimizer.clear_grad()
        self._present = set()

    # State ------------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """The state as the optimizer has it on one rank; collective, and the same on every rank.

        Returns:
            The state by key; see the optimizer's state_dict.
        """
        found: dict[str, Any] = self._updates.state_dict()
        return found

    def set_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state_dict of the optimizer, of Zero on any number of ranks or of one rank.

        Args:
            state: The state; every rank gives the same.
            strict: Whether its keys must be those of the optimizer.

        Raises:
            NotFoundError: Keys are missing or unknown, if strict; nothing is changed.
            InvalidArgumentError: A shape or dtype differs; nothing is changed.
        """
        self._updates.set_state_dict(state, strict)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """The same as `set_state_dict`."""
        self.set_state_dict(state, strict)


class _Parts(Exchange):
    """This rank's parts of the means of gradients, which add up in the parts that `Zero` updates."""

    def __init__(self, owner: str, zero: Zero) -> None:
        self._zero = weakref.proxy(zero)  # which has this
        super().__init__(owner, zero._whole, zero._ranks)

    def _buckets(self, positions: Sequence[int]) -> list[Bucket]:
        # Which elements a rank has is settled, so a bucket is sent whole when the last of its gradients is there.
        ready = {k: n for n, k in enumerate(positions)}
        last = [max((ready.get(k, -1) for k in chosen), default=-1) for chosen in self._zero._positions]
        return [self._zero._buckets[n] for n in np.argsort(last, kind="stable") if last[n] >= 0]

    def _is_sparse(self, gradient: Tensor) -> bool:
        return False  # becomes dense

    def _send(self, bucket: Bucket, gradients: Sequence[Tensor | None]) -> Transfer:
        pairs = zip(bucket.tensors, gradients, strict=True)
        flat = bucket.flat([None if g is None else self._zero._dense(p, g) for p, g in pairs])
        return self._ranks.start_reduce_scatter(flat, bucket.counts(self._ranks.size), 1.0 / self._ranks.size)

    def _take(self, bucket: Bucket, value: Any, present: Sequence[bool]) -> None:
        at = 0
        for p, there in zip(bucket.tensors, present, strict=True):
            k = self._positions[id(p)]
            part = self._zero._updates.parameters[k]
            own = value[at : at + part._value.size]
            at += own.size
            if there:
                self._zero._present.add(k)
                add_gradient(part, own)

    def _reduce_rows(self, p: Tensor) -> None:
        raise AssertionError("sparse gradients are sent as dense ones")
