"""Zero: an optimizer of which each rank keeps a part of the state, and with stage 2 of the gradients as well."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from oprack.autograd.after_backward import after_backward
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import context
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import CollectiveError, InvalidArgumentError, PreconditionNotMetError
from oprack.parallel.communicator import Communicator
from oprack.parallel.training.buckets import Bucket, bucket_bytes, buckets
from oprack.parallel.training.data_parallel import calling, copy_from_first
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
        PreconditionNotMetError: The optimizer has no parameters.
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
        self._home = world()
        self._ranks = communicator or self._home
        self.stage, self._optimizer = stage, optimizer
        whole: list[Tensor] = optimizer.updates.parameters
        positions = {id(p): k for k, p in enumerate(whole)}
        self._buckets = list(buckets(whole, bucket_bytes(bucket_mb, "Zero")))
        self._positions = [[positions[id(p)] for p in b.tensors] for b in self._buckets]
        pieces = [spans for b in self._buckets for spans in b.pieces(self._ranks.size)]
        self._updates = optimizer.updates_in_parts(pieces, self._ranks, "Zero")
        self._whole = whole
        self._present: set[int] = set()  # positions of parameters that have a gradient on some rank, in stage 2
        self._compared = _COMPARED if self._ranks.size > 1 else 0
        copy_from_first("Zero", [(str(k), p) for k, p in enumerate(whole)], self._ranks)
        if stage == 2:
            after_backward(calling(self))

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
        self._updates.step()
        self._updates.forget_restored(self._present)
        for bucket, positions in zip(self._buckets, self._positions, strict=True):
            if not self._present.isdisjoint(positions):
                with context(bucket.tensors[0].place).activate():
                    own = np.concatenate([self._updates.parameters[k]._value for k in positions])
                    whole = self._ranks.all_gather(own, bucket.counts(self._ranks.size))
                for p, value in zip(bucket.tensors, bucket.views(whole), strict=True):
                    p._overwrite(value, None, "Zero.step")

    def _take_gradients(self) -> None:
        self._present = {k for k, p in enumerate(self._whole) if p.requires_grad and p._grad is not None}
        if self._compared:
            self._compared -= 1
            self._compare()
        for k, p in enumerate(self._whole):
            part = self._updates.parameters[k]
            if k in self._present:
                value = self._updates.elements(k, self._dense(p))
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
        value = self._dense(p)
        value = value.get() if hasattr(value, "get") else value  # of a device
        return zlib.crc32(np.ascontiguousarray(value).tobytes())

    def _dense(self, p: Tensor) -> Any:
        """The gradient of a parameter as an array."""
        gradient = p._grad
        assert gradient is not None
        if not gradient.is_sparse:
            return gradient._value
        if getattr(self._optimizer, "lazy_mode", False):
            raise InvalidArgumentError(
                f"Zero: {type(self._optimizer).__name__} has lazy_mode, which only sparse gradients know, and that of "
                f"{p.describe()} becomes dense here; make the optimizer with lazy_mode=False"
            )
        return gradient._value.to_dense()

    # Stage 2 ----------------------------------------------------------------------------------------------------------
    def after_backward(self) -> None:
        """Sum up the gradients of the ranks and keep this one's part, unless no parameter has a new one."""
        # Ranks may be threads, each with a world and an optimizer of its own.
        if world() is not self._home or all(p._grad is None for p in self._whole):
            return
        flags = np.array([p._grad is not None for p in self._whole], np.uint8)
        present = {int(k) for k in np.flatnonzero(self._ranks.all_reduce(flags, "max"))}
        self._present |= present
        for bucket, positions in zip(self._buckets, self._positions, strict=True):
            if not present.isdisjoint(positions):
                with context(bucket.tensors[0].place).activate():
                    self._reduce(bucket, positions, present)

    def _reduce(self, bucket: Bucket, positions: Sequence[int], present: set[int]) -> None:
        values = [None if p._grad is None else self._dense(p) for p in bucket.tensors]
        for p in bucket.tensors:
            p._grad = None
        own = self._ranks.reduce_scatter(bucket.joined(values, 1.0 / self._ranks.size), bucket.counts(self._ranks.size))
        at = 0
        for k in positions:
            part = self._updates.parameters[k]
            value = own[at : at + part._value.size]
            at += value.size
            if k in present:
                total = value if part._grad is None else part._grad._value + value
                part._grad = new_tensor(total, meta_of_value(total, part.place))

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
