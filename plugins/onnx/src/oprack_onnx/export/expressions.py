"""Values of a graph that is being written, with the operators of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.graph import Call, Graph
from oprack_onnx.values import FLOATING

LAST = 2**62
"""An end that lies behind all."""


class Expr:
    """A value, its dtype, and what can be done with it; a number beside it becomes a constant of its dtype.

    Args:
        graph: Where nodes are written.
        name: The value.
        dtype: Its dtype.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, name: str, dtype: VarType) -> None:
        self.graph, self.name = graph, name
        self.dtype = graph.types.setdefault(name, dtype)

    def like(self, value: Any) -> Expr:
        """A value, or a constant of this one's dtype."""
        if isinstance(value, Expr):
            return value
        return Expr(self.graph, self.graph.constant(value, numpy_dtype(self.dtype)), self.dtype)

    def ints(self, value: Any) -> Expr:
        """A constant of int64."""
        if isinstance(value, Expr):
            return value.cast(VarType.INT64)
        return Expr(self.graph, self.graph.constant(value), VarType.INT64)

    def op(self, op: str, *others: Any, dtype: VarType | None = None, **attrs: Any) -> Expr:
        """A node of which this value is the first input; "" leaves an input out."""
        inputs = [self.name, *("" if isinstance(o, str) else self.like(o).name for o in others)]
        return Expr(self.graph, str(self.graph.node(op, inputs, **attrs)), self.dtype if dtype is None else dtype)

    def ops(self, op: str, count: int, *others: Any, dtypes: Sequence[VarType] = (), **attrs: Any) -> list[Expr]:
        """A node of several outputs."""
        inputs = [self.name, *("" if isinstance(o, str) else self.like(o).name for o in others)]
        names = self.graph.node(op, inputs, count, **attrs)
        listed = [names] if count == 1 else names
        return [Expr(self.graph, n, dtypes[i] if i < len(dtypes) else self.dtype) for i, n in enumerate(listed)]

    # Arithmetic -------------------------------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Expr:
        return self.op("Add", other)

    def __radd__(self, other: Any) -> Expr:
        return self.like(other).op("Add", self)

    def __sub__(self, other: Any) -> Expr:
        return self.op("Sub", other)

    def __rsub__(self, other: Any) -> Expr:
        return self.like(other).op("Sub", self)

    def __mul__(self, other: Any) -> Expr:
        return self.op("Mul", other)

    def __rmul__(self, other: Any) -> Expr:
        return self.like(other).op("Mul", self)

    def __truediv__(self, other: Any) -> Expr:
        return self.op("Div", other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self.like(other).op("Div", self)

    def __pow__(self, other: Any) -> Expr:
        return self.op("Pow", other)

    def __matmul__(self, other: Expr) -> Expr:
        return self.op("MatMul", other)

    def __neg__(self) -> Expr:
        return self.op("Neg")

    def __abs__(self) -> Expr:
        return self.op("Abs")

    def __lt__(self, other: Any) -> Expr:
        return self.op("Less", other, dtype=VarType.BOOL)

    def __le__(self, other: Any) -> Expr:
        return self.op("LessOrEqual", other, dtype=VarType.BOOL)

    def __gt__(self, other: Any) -> Expr:
        return self.op("Greater", other, dtype=VarType.BOOL)

    def __ge__(self, other: Any) -> Expr:
        return self.op("GreaterOrEqual", other, dtype=VarType.BOOL)

    def equal(self, other: Any) -> Expr:
        """Whether elements are equal."""
        return self.op("Equal", other, dtype=VarType.BOOL)

    def __and__(self, other: Expr) -> Expr:
        return self.op("And", other)

    def __or__(self, other: Expr) -> Expr:
        return self.op("Or", other)

    def __invert__(self) -> Expr:
        return self.op("Not")

    def exp(self) -> Expr:
        """e to the power of it."""
        return self.op("Exp")

    def log(self) -> Expr:
        """Its logarithm."""
        return self.op("Log")

    def sqrt(self) -> Expr:
        """Its root."""
        return self.op("Sqrt")

    def sigmoid(self) -> Expr:
        """Its sigmoid."""
        return self.op("Sigmoid")

    def maximum(self, other: Any) -> Expr:
        """The larger one of each two."""
        return self.op("Max", other)

    def minimum(self, other: Any) -> Expr:
        """The smaller one of each two."""
        return self.op("Min", other)

    def select(self, yes: Any, no: Any) -> Expr:
        """`yes` where this is true, else `no`; one of them is a value."""
        first = yes if isinstance(yes, Expr) else no
        if first.dtype is VarType.BOOL:  # of which ONNX Runtime has no Where
            return (self & first.like(yes)) | (~self & first.like(no))
        return Expr(
            self.graph,
            str(self.graph.node("Where", [self.name, first.like(yes).name, first.like(no).name])),
            first.dtype,
        )

    # Reductions -------------------------------------------------------------------------------------------------------
    def reduce(self, how: str, axes: Sequence[int] | None = None, keep: bool = False) -> Expr:
        """Reduce by ReduceSum, ReduceMean ...; None takes all axes."""
        given = [] if axes is None else [self.ints(list(axes))]
        return self.op(f"Reduce{how}", *given, keepdims=int(keep))

    def sum(self, *axes: int, keep: bool = False) -> Expr:
        """The sum over axes; over all, when none is named."""
        return self.reduce("Sum", axes or None, keep)

    def mean(self, *axes: int, keep: bool = False) -> Expr:
        """The mean over axes."""
        return self.reduce("Mean", axes or None, keep)

    def max(self, *axes: int, keep: bool = False) -> Expr:
        """The largest one over axes."""
        return self.reduce("Max", axes or None, keep)

    def min(self, *axes: int, keep: bool = False) -> Expr:
        """The smallest one over axes."""
        return self.reduce("Min", axes or None, keep)

    def any(self, *axes: int, keep: bool = False) -> Expr:
        """Whether one of several is true."""
        return self.cast(VarType.INT32).max(*axes, keep=keep).cast(VarType.BOOL)

    def all(self, *axes: int, keep: bool = False) -> Expr:
        """Whether all of several are true."""
        return self.cast(VarType.INT32).min(*axes, keep=keep).cast(VarType.BOOL)

    # Shapes -----------------------------------------------------------------------------------------------------------
    def cast(self, dtype: VarType) -> Expr:
        """With another dtype."""
        return self if dtype is self.dtype else Expr(self.graph, self.graph.cast(self.name, dtype), dtype)

    def shape(self, start: int | None = None, end: int | None = None) -> Expr:
        """Its dims, as int64."""
        return self.op("Shape", dtype=VarType.INT64, start=start, end=end)

    def size(self, axis: int) -> Expr:
        """One dim, in one row."""
        end = axis + 1 if axis != -1 else None
        return self.shape(axis, end)

    def reshape(self, *dims: Any) -> Expr:
        """In another shape: numbers, or rows of dims that are values."""
        return self.op("Reshape", self.row(dims))

    def row(self, dims: Sequence[Any]) -> Expr:
        """Numbers and rows of int64 as one row."""
        if not any(isinstance(d, Expr) for d in dims):
            return self.ints(list(dims))
        parts = [d if isinstance(d, Expr) else self.ints([d]) for d in dims]
        return parts[0] if len(parts) == 1 else parts[0].join(*parts[1:], axis=0)

    def scalar(self) -> Expr:
        """Of rank 0."""
        return self.op("Reshape", self.ints([]))

    def expand(self, *dims: Any) -> Expr:
        """Repeated along axes of size 1."""
        return self.op("Expand", self.row(dims))

    def transpose(self, *order: int) -> Expr:
        """Its axes in another order."""
        return self.op("Transpose", perm=list(order))

    def unsqueeze(self, *axes: int) -> Expr:
        """With axes of size 1."""
        return self.op("Unsqueeze", self.ints(list(axes)))

    def squeeze(self, *axes: int) -> Expr:
        """Without axes of size 1."""
        return self.op("Squeeze", self.ints(list(axes)))

    def slice(self, start: Any, end: Any, axis: int = 0, step: int = 1) -> Expr:
        """A part along an axis."""
        rows = [v.reshape(-1) if isinstance(v, Expr) else self.ints([v]) for v in (start, end)]
        steps = [] if step == 1 else [self.ints([step])]
        return self.op("Slice", *rows, self.ints([axis]), *steps)

    def at(self, place: int, axis: int) -> Expr:
        """What is at a place along an axis, which goes."""
        return self.op("Gather", self.ints(place), axis=axis)

    def join(self, *others: Any, axis: int) -> Expr:
        """One behind the other along an axis."""
        return self.op("Concat", *others, axis=axis)

    # Places -----------------------------------------------------------------------------------------------------------
    def gather(self, places: Any, axis: int = 0) -> Expr:
        """Slices at places of an axis."""
        return self.op("Gather", self.ints(places), axis=axis)

    def scatter_add(self, places: Expr, updates: Expr, how: str = "add") -> Expr:
        """With rows added, or reduced otherwise, at places of the first axis."""
        return self.op("ScatterND", places.unsqueeze(1), updates, reduction=how)

    def cumsum(self, axis: int = 0, **flags: Any) -> Expr:
        """Sums up to each place."""
        return self.op("CumSum", self.ints(axis), **flags)

    def top(self, count: Any, axis: int = -1, largest: bool = True) -> tuple[Expr, Expr]:
        """The largest ones in falling order (or the smallest), and their places."""
        k = count.reshape(1) if isinstance(count, Expr) else self.ints([count])
        both = self.ops("TopK", 2, k, dtypes=(self.dtype, VarType.INT64), axis=axis, largest=int(largest), sorted=1)
        return both[0], both[1]

    def nonzero(self) -> Expr:
        """The places that are true, a row of indices for each axis."""
        return self.op("NonZero", dtype=VarType.INT64)

    def is_float(self) -> bool:
        """Whether it has floats."""
        return self.dtype in FLOATING


def read(call: Call, slot: str = "X", i: int = 0) -> Expr:
    """An input."""
    return Expr(call.graph, call.input(slot, i), call.graph.dtype(call.name(slot, i)))


def maybe(call: Call, slot: str) -> Expr | None:
    """An input, or None where it is absent."""
    return read(call, slot) if call.has(slot) else None


def write(call: Call, value: Expr, slot: str = "Out", i: int = 0) -> None:
    """Set an output, with its dtype."""
    call.set(value.name, slot, i, dtype=value.dtype)


def constant(graph: Graph, value: Any, dtype: VarType = VarType.INT64) -> Expr:
    """A constant."""
    return Expr(graph, graph.constant(np.asarray(value), numpy_dtype(dtype)), dtype)


def arange(end: Expr, start: Any = 0) -> Expr:
    """The integers from `start` to before `end`."""
    begin = start.scalar() if isinstance(start, Expr) else end.ints(start)
    return begin.op("Range", end.cast(VarType.INT64).scalar(), end.ints(1))


def full(dims: Expr, value: Any, dtype: VarType) -> Expr:
    """A value in every place of a shape that a run knows."""
    one = value if isinstance(value, Expr) else constant(dims.graph, value, dtype)
    return one.op("Expand", dims)


__all__ = ["LAST", "Expr", "arange", "constant", "full", "maybe", "read", "write"]
