"""FakeWorld: one rank of a world of any size, in one process: what it would send, compute and hold.

Tensors lie at the place of shapes, where ops say the shapes of their results by their rules and compute nothing. So a
program runs as it is; what it asks for by value is NaN, and what depends on values goes the way that NaN goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.eager_tensor.devices import use_home
from oprack.eager_tensor.meta import tensor_meta
from oprack.errors import InvalidArgumentError, OprackError, UnimplementedError
from oprack.interpreter.base import Wrapped
from oprack.interpreter.modes import wrapped
from oprack.interpreter.op_expr import OpExpr
from oprack.op.sbp.signature import SbpContext, product_flops
from oprack.packs.manager import default_manager
from oprack.parallel.communicator import Communicator
from oprack.parallel.costs import Accelerator, Costs, Work
from oprack.parallel.links import Links, traffic
from oprack.parallel.world import use_world, world
from oprack.runtime.checks import shapes_elsewhere
from oprack.runtime.kernel_call import Values
from oprack.runtime.kernel_operator import OperatorWithKernel
from oprack.tensor import LoDTensor, Scope, numpy_dtype
from oprack.tensor.place import ShapesPlace
from oprack.tensor.shape_only import LEDGER, ShapeArray, shape_array, use_ledger
from oprack.types import DTYPE_NAMES, EMPTY_VAR, GRAD_SUFFIX, VarType

if TYPE_CHECKING:
    from oprack.runtime.run_context import RunContext

SHAPES = ShapesPlace()


@dataclass
class Line:
    """Collectives of one sort along one axis.

    Attributes:
        axis: Name of the axis, or of the group of ranks.
        collective: Its name.
        ranks: How many take part.
        count: How many there were.
        moved: Bytes that this rank sends in all of them.
        seconds: What they take by the links.
    """

    axis: str
    collective: str
    ranks: int
    count: int = 0
    moved: float = 0.0
    seconds: float = 0.0


@dataclass
class Report:
    """What a rank would do.

    Attributes:
        rank: Which.
        lines: Its collectives, by axis and sort.
        work: Its ops, by type and dtype.
        peak: The most bytes that its tensors hold at a time.
        result: What the function returned.
    """

    rank: int
    lines: list[Line] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    peak: int = 0
    result: Any = None

    @property
    def flops(self) -> int:
        """Floating-point operations of its products."""
        return sum(work.flops for work in self.work)

    @property
    def moved(self) -> int:
        """Bytes that its ops read and write."""
        return sum(work.moved for work in self.work)

    @property
    def compute_seconds(self) -> float:
        """What its ops take, one after the other; 0.0 without an accelerator."""
        return sum(work.seconds for work in self.work)

    @property
    def seconds(self) -> float:
        """What its collectives take, one after the other."""
        return sum(line.seconds for line in self.lines)

    def count(self, collective: str, axis: str = "") -> int:
        """How many collectives of a sort there were, along one axis or all."""
        return sum(n.count for n in self.lines if n.collective == collective and axis in ("", n.axis))


@dataclass
class _Log:
    """What a rank has done so far."""

    costs: Costs
    lines: dict[Any, Line] = field(default_factory=dict)


class FakeCommunicator(Communicator):
    """A rank of a FakeWorld: collectives are written down, and give arrays of the shapes that they would.

    Args:
        rank: This rank.
        size: Number of ranks.
        name: The axis.
        links: How long messages take.
        log: Where collectives are written down.
    """

    engine = "simulated"
    timed = False
    place_kind = SHAPES.kind

    def __init__(self, rank: int, size: int, name: str, links: Links, log: _Log) -> None:
        super().__init__(rank, size, name)
        self.links, self.log = links, log
        self._checked = 0

    def restart(self) -> None:
        """Forget what was sent and computed so far, and the most that was held: setting up is no part of a step."""
        self.log.lines.clear()
        self.log.costs.restart()

    def adopt(self, x: Tensor) -> Tensor:
        """Let a dense tensor of host memory have shape and dtype alone, in place."""
        meta = x._meta
        if meta.container is LoDTensor and meta.layout is None and meta.place.kind == "cpu":
            x._value = shape_array(x._value.shape, x._value.dtype)
            x._meta = tensor_meta(LoDTensor, meta.dtype, SHAPES, meta.lod_level, meta.grad, meta.tracked)
        return x

    def _note(self, collective: str, size: float) -> None:
        if self.size == 1:
            return
        key = (self.name, collective, self.size)
        line = self.log.lines.setdefault(key, Line(self.name, collective, self.size))
        line.count += 1
        line.moved += traffic(collective, size, self.size)[0]
        line.seconds += self.links.of(self.name).seconds(collective, size, self.size)

    # The public methods, since nothing has to be compared or waited for -----------------------------------------------
    def all_reduce(self, x: Any, op: str = "sum", in_place: bool = False) -> Any:
        """See Communicator."""
        self._note("all_reduce", x.nbytes)
        return x if in_place else x.copy()

    def all_gather(self, x: Any, counts: Sequence[int] | None = None) -> Any:
        """See Communicator; all ranks are taken to bring what this one does."""
        rows = sum(counts) if counts is not None else x.shape[0] * self.size
        found = _resized(x, (rows, *x.shape[1:]))
        self._note("all_gather", found.nbytes)
        return found

    def reduce_scatter(self, x: Any, counts: Sequence[int]) -> Any:
        """See Communicator."""
        self._note("reduce_scatter", x.nbytes)
        return x[: counts[self.rank]].copy()

    def all_to_all(self, parts: Sequence[Any], shapes: Sequence[Sequence[int]]) -> list[Any]:
        """See Communicator."""
        self._note("all_to_all", sum(p.nbytes for p in parts) * self.size)
        return [_resized(parts[0], shape) for shape in shapes]

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """See Communicator."""
        self._note("broadcast", x.nbytes)
        return x.copy()

    def send(self, x: Any, to: int) -> None:
        """See Communicator."""
        self._note("send", x.nbytes)

    def receive(self, shape: Sequence[int], dtype: Any, source: int) -> Any:
        """See Communicator."""
        return shape_array(shape, dtype)

    def gather_facts(self, value: Any) -> list[Any]:
        """See Communicator; all ranks are taken to say what this one does."""
        return [value] * self.size

    def agree(self, key: Any, decision: Any, what: str) -> None:
        """See Communicator; all ranks are taken to decide what this one does."""

    def split(self, color: int, key: int, name: str, size: int | None = None, common: str = "") -> Communicator:
        """See Communicator; the number of ranks has to be given."""
        if size is None:
            raise InvalidArgumentError(f"split {name}: a simulated world can't ask other ranks; say the group's size")
        return FakeCommunicator(key if key < size else 0, size, name, self.links, self.log)

    def abort(self, code: int, reason: str = "") -> None:
        """End the program."""
        raise SystemExit(code)

    _all_reduce = _all_gather = _reduce_scatter = _all_to_all = _broadcast = _send = _receive = None  # type: ignore[assignment]
    _gather_facts = _split = None  # type: ignore[assignment]


def _resized(x: Any, shape: Sequence[int]) -> Any:
    return shape_array(shape, x.dtype) if isinstance(x, ShapeArray) else np.resize(x, tuple(shape))


class _Shapes(Wrapped):
    """Calls with tensors of host memory are made with their shapes, since no call has inputs at two places."""

    def __init__(self, inner: Any, world: FakeCommunicator) -> None:
        super().__init__(inner)
        self._world = world

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        for a in args:
            if isinstance(a, Tensor):
                self._world.adopt(a)
        if not args:  # another expression, whose results are not those of calls outside
            expr = OpExpr(expr.info, expr.attrs, expr.inputs, expr.outputs, expr.in_place, expr.flat, expr.rules)
        return self.inner.apply(expr, args)


class FakeWorld:
    """A world of so many ranks, of which one is simulated at a time.

    Args:
        size: Number of ranks.
        grid: Name of an axis -> its size, for placements that say no shape; default: one axis of all ranks.
        links: How long messages take; default: 20 us and 5 GB/s.
        accelerator: How long ops take; None counts what they compute and move alone.

    Raises:
        InvalidArgumentError: The grid does not hold so many ranks.
    """

    def __init__(
        self,
        size: int,
        grid: dict[str, int] | None = None,
        links: Links | None = None,
        accelerator: Accelerator | None = None,
    ) -> None:
        if size < 1 or (grid and int(np.prod(list(grid.values()))) != size):
            raise InvalidArgumentError(
                f"FakeWorld: {size} ranks in the grid {grid or size}; expected axes whose sizes multiply to it"
            )
        self.size, self.links, self.accelerator = size, links or Links(), accelerator
        self.grid = (tuple(grid.values()), tuple(grid)) if grid else None

    @contextmanager
    def rank(self, rank: int = 0) -> Iterator[Report]:
        """Let this thread be a rank inside a with block; the report is complete after it.

        Yields:
            The report.

        Raises:
            InvalidArgumentError: There is no such rank.
        """
        if not 0 <= rank < self.size:
            raise InvalidArgumentError(f"FakeWorld: rank {rank} of {self.size}; expected 0 to {self.size - 1}")
        report, costs = Report(rank), Costs(self.accelerator)
        here = FakeCommunicator(rank, self.size, "world", self.links, _Log(costs))
        here.grid = self.grid
        try:
            with ExitStack() as stack:
                stack.enter_context(use_world(here))
                stack.enter_context(shapes_elsewhere())
                stack.enter_context(use_home(SHAPES))
                stack.enter_context(use_ledger(costs))
                stack.enter_context(wrapped(_Maker(here)))
                yield report
        finally:
            report.lines = sorted(here.log.lines.values(), key=lambda n: -n.seconds)
            report.work, report.peak = costs.work(), costs.peak

    def run(self, function: Callable[[FakeCommunicator], Any], rank: int = 0) -> Report:
        """Call a function as a rank.

        Args:
            function: Gets the rank's world.
            rank: Which.

        Returns:
            The report.
        """
        with self.rank(rank) as report:
            report.result = function(world())  # type: ignore[arg-type]
        return report


class _Maker:
    """Makes the wrapper of a world; one object for each world, by which modes are told apart."""

    def __init__(self, world: FakeCommunicator) -> None:
        self._world = world

    def __call__(self, inner: Any) -> _Shapes:
        return _Shapes(inner, self._world)


_GRAD_OP = "_grad"


class ShapeOperator(OperatorWithKernel, place=ShapesPlace.kind):
    """An op without a kernel: shapes of its outputs come from its shape rule, dtypes from its type rule."""

    runs_itself: ClassVar[bool] = True

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        """Ask the rules, and write arrays without elements.

        Args:
            scope: Where its variables are.
            run: The run that it is part of.

        Raises:
            UnimplementedError: A shape follows from values, or an output is no dense tensor.
        """
        values = self.input_values(scope)
        self.require_inputs(values)
        attrs = self.resolved_attrs(scope) if self.tensor_attrs else self.attrs
        inferred = self.run_infer_shape(values, attrs)
        lods = {target: source for source, target in inferred.shares}
        made: dict[str, list[Any]] = {}
        for slot in self._out_slots:
            for i, name in enumerate(self.outputs[slot]):
                if name == EMPTY_VAR:
                    continue
                dims = inferred.dims.get((slot, i))
                if dims is None and self.info.proto.outputs[slot].intermediate:
                    continue
                if dims is None or any(d < 0 for d in dims):
                    raise UnimplementedError(
                        f"op {self.type}: the shape of {slot} follows from values, which do not exist where shapes "
                        "alone are computed; simulate a program without this op, or run it on one rank"
                    )
                source, k = lods.get((slot, i), ("", 0))
                lod = values[source][k].lod if source and isinstance(values[source][k], LoDTensor) else []
                self._write(scope, run, slot, name, dims, lod, values)
                made.setdefault(slot, []).append(tuple(dims))
        costs = LEDGER.get()
        if isinstance(costs, Costs):
            dtype = str(self._dtype(None, values))
            costs.add(self.type, dtype, self._products(values, made, attrs), self._moved(values, scope))

    def _write(self, scope: Scope, run: RunContext, slot: str, name: str, dims: Any, lod: Any, values: Values) -> None:
        var = self.block.find_var_recursive(name)
        if var is not None and var.type not in (None, VarType.LOD_TENSOR):
            raise UnimplementedError(
                f"op {self.type}: {slot} is no dense tensor but {VarType(var.type).name}, which is not computed by "
                "shapes alone; ask for dense gradients"
            )
        dtype = self._dtype(var, values)
        current = scope.find_var(name)
        old = None if current is None else current.value
        if isinstance(old, LoDTensor) and name in self._read_names() and old.array.shape == tuple(dims):
            return  # computed in place
        source = self._source(values)
        is_view = isinstance(source, ShapeArray) and math.prod(dims) == source.size and source.dtype == dtype
        array = shape_array(dims, dtype, source if is_view else None)
        self.set_output(scope, name, LoDTensor(array, lod, place=run.place, check=False))

    @cached_property
    def _viewed_slot(self) -> str:
        """The slot of which kernels on the CPU return views; "" where they compute."""
        return next(iter(default_manager().kernel_map(self.type, "cpu").viewed), "")

    def _source(self, values: Values) -> Any:
        """The array that results of its size are views of; None where they are computed."""
        tensor = next(iter(values.get(self._viewed_slot, ())), None)
        return tensor.array if isinstance(tensor, LoDTensor) else None

    def _moved(self, values: Values, scope: Scope) -> int:
        """Bytes that a kernel reads and writes: inputs but those of which it asks the shape, and outputs but views."""
        names = (n for names in self.outputs.values() for n in names if n != EMPTY_VAR)
        written = [var.value.array for n in names if (var := scope.find_var(n)) and isinstance(var.value, LoDTensor)]
        source = self._source(values)
        if source is not None:
            computed = sum(a.nbytes for a in written if a.size != source.size)
            return int(source.nbytes + computed) if computed else 0
        unread = self.info.no_need_buffer_vars
        read = {
            id(v): v.array.nbytes for s, vs in values.items() if s not in unread for v in vs if isinstance(v, LoDTensor)
        }
        return int(sum(read.values()) + sum(a.nbytes for a in written))

    def _read_names(self) -> set[str]:
        return {n for names in self.inputs.values() for n in names}

    @staticmethod
    def _dtype(var: Any, values: Values) -> Any:
        """What the program declares, as the type rule said; else that of the first input."""
        if var is not None and var.dtype in DTYPE_NAMES:
            return numpy_dtype(var.dtype)
        return next((v.array.dtype for vs in values.values() for v in vs if isinstance(v, LoDTensor)), "float32")

    def _products(self, values: Values, made: Mapping[str, Any], attrs: Mapping[str, Any]) -> list[tuple[int, int]]:
        """(operations, elements of the output) of a product, or of the gradients of one: products of the same size."""
        info, outputs = self.info, made
        dims = {s: [getattr(v, "shape", None) for v in vs] for s, vs in values.items()} | dict(made)
        if self.type.endswith(_GRAD_OP):
            try:
                info = default_manager().op_info(self.type.removesuffix(_GRAD_OP))
            except OprackError:
                return []
            outputs = {s: shapes for s, shapes in made.items() if s.endswith(GRAD_SUFFIX)}
            dims = {s.removesuffix(GRAD_SUFFIX): shapes for s, shapes in dims.items()}
        if info.sbp is None or not all(s in dims for s, slot in info.proto.inputs.items() if not slot.dispensable):
            return []
        ctx = SbpContext(info.type, attrs, dims)
        flops = product_flops(info.sbp(ctx), ctx)
        sizes = [math.prod(shapes[0]) for shapes in outputs.values()]
        return [(flops, size) for size in (sizes if outputs is not made else sizes[:1])] if flops else []
