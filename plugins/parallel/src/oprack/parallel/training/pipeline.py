"""Pipeline: a net cut into stages, each on ranks of its own, through which a batch goes in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.autograd.walk import backward
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.parallel.communicator import Communicator
from oprack.parallel.training.data_parallel import DataParallel
from oprack.parallel.world import use_world, world
from oprack.tensor import LoDTensor, numpy_dtype
from oprack.types import dtype_enum, dtype_name

if TYPE_CHECKING:
    from oprack.nn.module import Module

_HEADER = 12
"""Numbers of the message that says shape and dtype of what comes: count of dims, dtype, dims."""


class Pipeline:
    """Trains a net whose stages lie on different ranks, by the schedule 1F1B.

    The first ranks have the first stage, and so on, each as many. A batch is cut into micro-batches. Each stage passes
    a few of them on, then takes one forward and one backward in turns, so that a stage holds the activations of no more
    micro-batches than there are stages after it and itself. Gradients are those of the whole batch.

    Args:
        stages: For each stage, a function without arguments that makes its module, called on the ranks of the stage.
        micro_batches: Pieces of a batch; many of them, or stages wait for each other.
        communicator: The ranks; default: all.

    Attributes:
        stage: Which stage this rank has.
        module: Its module, whose parameters this rank's optimizer updates.
        ranks: The communicator of the ranks of this stage.
        in_flight: The most micro-batches whose activations this rank held at a time.

    Raises:
        InvalidArgumentError: The ranks are no multiple of the stages, or there is no micro-batch.
    """

    def __init__(
        self,
        stages: Sequence[Callable[[], Module | DataParallel]],
        micro_batches: int,
        communicator: Communicator | None = None,
    ) -> None:
        ranks = communicator or world()
        count = len(stages)
        if not count or ranks.size % count or micro_batches < 1:
            raise InvalidArgumentError(
                f"Pipeline: {count} stages and {micro_batches} micro-batches on {ranks.size} ranks; expected as many "
                "ranks for each stage, and at least one micro-batch"
            )
        each = ranks.size // count
        self.stage, at = divmod(ranks.rank, each)
        self.micro_batches = micro_batches
        self.ranks = ranks.split(self.stage, at, f"stage {self.stage}", each)
        self._line = ranks.split(at, self.stage, "stages", count)
        self.in_flight = 0
        # By the shape of a micro-batch: what arrives then, and of which the next stage was told what comes
        self._arriving: dict[tuple[int, ...], tuple[tuple[int, ...], Any]] = {}
        self._told: set[tuple[int, ...]] = set()
        with use_world(self.ranks):
            self.module: Any = stages[self.stage]()

    @property
    def is_first(self) -> bool:
        """Whether this rank has the first stage, which takes the batch."""
        return self.stage == 0

    @property
    def is_last(self) -> bool:
        """Whether this rank has the last stage, which computes the loss."""
        return self.stage == self._line.size - 1

    def train(self, batch: Tensor, targets: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> float:
        """Forward and backward of a batch; collective. Gradients are added to those of the parameters.

        Args:
            batch: The inputs of the net, the same rows on all stages; only the first stage reads them.
            targets: What the loss compares the outputs with, row by row; only the last stage reads them.
            loss: The mean loss of outputs and targets.

        Returns:
            The mean loss of the batch, on all ranks.

        Raises:
            InvalidArgumentError: Rows do not make equal micro-batches, or a stage gives no dense tensor of one process.
        """
        rows, pieces = batch.shape[0] if batch.shape else 0, self.micro_batches
        if rows % pieces or not rows or targets.shape[:1] != (rows,):
            raise InvalidArgumentError(
                f"Pipeline: {rows} rows, targets {list(targets.shape)}, {pieces} micro-batches; expected rows that "
                "make micro-batches of equal size, and as many targets"
            )
        step = rows // pieces
        run = _Run(self, batch, targets, loss, step)
        inside = self.module.no_sync() if isinstance(self.module, DataParallel) else None
        with use_world(self.ranks):
            if inside is None:
                run.schedule()
            else:
                with inside:
                    run.schedule()
                self.module.average_gradients()
        total = np.array([run.total / pieces], np.float64)
        return float(self._line.broadcast(total, self._line.size - 1)[0])


class _Run:
    """One batch on its way through this rank's stage."""

    def __init__(self, pipeline: Pipeline, batch: Tensor, targets: Tensor, loss: Callable[..., Tensor], step: int):
        self.p, self.batch, self.targets, self.loss, self.step = pipeline, batch, targets, loss, step
        self.held: deque[tuple[Tensor, Tensor]] = deque()
        self.total = 0.0
        self.key = (step, *batch.shape[1:])

    def schedule(self) -> None:
        """Pass some micro-batches on, then take one forward and one backward in turns, then go back with the rest."""
        line, pieces = self.p._line, self.p.micro_batches
        ahead = min(line.size - self.p.stage - 1, pieces)
        for i in range(ahead):
            self._send_on(self._forward(i, self._received()))
        x = self._received() if ahead < pieces else None
        for i in range(ahead, pieces):
            y = self._forward(i, x)
            given = self._backward(self._exchanged_behind(y))
            x = self._exchanged_before(given, more=i + 1 < pieces)
        for _ in range(ahead):
            given = self._backward(self._gradient_behind())
            self._exchanged_before(given, more=False)

    # One micro-batch --------------------------------------------------------------------------------------------------
    def _forward(self, i: int, x: Any) -> Tensor:
        p, rows = self.p, slice(i * self.step, (i + 1) * self.step)
        if p.is_first:
            given = _rows(self.batch, rows)
        else:
            given = new_tensor(x, meta_of_value(x, self.batch.place))
            given.requires_grad = given._meta.differentiable
        y = p.module(given)
        if p.is_last:
            y = self.loss(y, _rows(self.targets, rows))
            self.total += float(y.item())
        elif not isinstance(y, Tensor) or y._meta.layout is not None or y._meta.container is not LoDTensor or y._lod:
            raise InvalidArgumentError(
                f"Pipeline: stage {p.stage} gives {y.describe() if isinstance(y, Tensor) else type(y).__name__}; "
                "expected one dense tensor of this process (to_local() of a global one), which the next stage takes"
            )
        self.held.append((given, y))
        p.in_flight = max(p.in_flight, len(self.held))
        return y

    def _backward(self, gradient: Any) -> Any:
        """The gradient of what arrived, from that of what was sent on; both arrays."""
        given, y = self.held.popleft()
        if self.p.is_last:
            value = np.full(y.shape, 1.0 / self.p.micro_batches, y._meta.dtype)
        else:
            value = gradient
        backward([y], [new_tensor(value, meta_of_value(value, y.place))])
        if self.p.is_first:
            return None
        if given.grad is None:
            raise PreconditionNotMetError(f"Pipeline: no gradient reaches the input of stage {self.p.stage}")
        return given.grad._value

    # Messages ---------------------------------------------------------------------------------------------------------
    # Before the first exchange, messages go one way alone, so that no two ranks wait for each other.
    def _send_on(self, y: Tensor) -> None:
        """Send an activation on; before the first of this shape, say what comes."""
        line, after = self.p._line, self.p.stage + 1
        if self.key not in self.p._told:
            self.p._told.add(self.key)
            header = np.zeros(_HEADER, np.int64)
            header[: 2 + y.ndim] = [y.ndim, int(dtype_enum(y.dtype)), *y.shape]
            line.send(header, after)
        line.send(y._value, after)

    def _received(self) -> Any:
        p = self.p
        if p.is_first:
            return None
        known = p._arriving.get(self.key)
        if known is None:
            header = p._line.receive((_HEADER,), np.int64, p.stage - 1)
            shape = tuple(int(n) for n in header[2 : 2 + int(header[0])])
            known = p._arriving[self.key] = shape, numpy_dtype(dtype_name(int(header[1])))
        shape, dtype = known
        return p._line.receive(shape, dtype, p.stage - 1)

    def _exchanged_behind(self, y: Tensor) -> Any:
        """Send an activation to the stage behind and get a gradient from there."""
        if self.p.is_last:
            return None
        oldest = self.held[0][1]
        return _swapped(self.p._line, y._value, oldest.shape, oldest._meta.dtype, self.p.stage + 1)

    def _gradient_behind(self) -> Any:
        oldest = self.held[0][1]
        return self.p._line.receive(oldest.shape, oldest._meta.dtype, self.p.stage + 1)

    def _exchanged_before(self, gradient: Any, more: bool) -> Any:
        """Send a gradient to the stage before, and get the next activation from there if one comes."""
        p = self.p
        if p.is_first:
            return None
        if more:
            shape, dtype = p._arriving[self.key]
            return _swapped(p._line, gradient, shape, dtype, p.stage - 1)
        p._line.send(gradient, p.stage - 1)
        return None


def _rows(x: Tensor, rows: slice) -> Tensor:
    value = x._value[rows]
    return new_tensor(value, x._meta.without_grad)


def _swapped(line: Communicator, x: Any, shape: Sequence[int], dtype: Any, other: int) -> Any:
    """Send an array to a rank that does the same, and get one of this shape from it."""
    # One sends while the other receives, since engines may let a large message wait for its receiver.
    if line.rank < other:
        line.send(x, other)
        return line.receive(shape, dtype, other)
    found = line.receive(shape, dtype, other)
    line.send(x, other)
    return found
