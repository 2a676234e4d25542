"""Ops that mix a row with those near to it, as convolutions along the text do: how far each of them looks.

They run on whole batches as they did, but for windows of rows. What matters is which rows of padding they look at, as
these have to be there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from oprack.ir import Graph, OpNode, VarNode

from oprack_sequence.passes._rules import UNARY
from oprack_sequence.passes._sizes import BINARY, Sizes

_CONVOLUTIONS = frozenset(("conv2d", "depthwise_conv2d"))


class Span(NamedTuple):
    """What is at place i of dim `axis` is made of rows i + low to i + high of the source.

    Attributes:
        source: A variable [B, S, ...].
        axis: The dim that S has become.
        low: The first of these rows.
        high: The last one.
        copied: Whether it is that row, with 0 for those outside of the batch.
    """

    source: VarNode
    axis: int = 1
    low: int = 0
    high: int = 0
    copied: bool = True

    def wider(self, low: int, high: int, copied: bool = True) -> Span:
        return self._replace(low=self.low + low, high=self.high + high, copied=self.copied and copied)

    @property
    def reach(self) -> int:
        """How many rows before or behind its own one is made of."""
        return max(-self.low, self.high, 0)


class Windows(NamedTuple):
    """Rows [B, S, ...] beside one another: those of `before` places before each to `behind` places behind it."""

    source: VarNode
    before: int
    behind: int
    axis: int


class Product(NamedTuple):
    """Rows [B, S, C] times a filter [M, C, 1, 1], as a convolution of size 1 is."""

    source: VarNode
    filter: VarNode


class Spans:
    """The spans of variables that are made of rows with B in front.

    Args:
        graph: The graph.
        sizes: The dims of its variables.
        is_rows: Whether a variable is [B, S, ...] of the mask's batch.
    """

    def __init__(self, graph: Graph, sizes: Sizes, is_rows: Callable[[VarNode | None], bool]) -> None:
        self._graph, self._sizes, self._is_rows = graph, sizes, is_rows
        self._of: dict[VarNode, Span] = {}
        self._before: dict[OpNode, VarNode] = {}  # the operand of an op that gives a variable with a span

    def follow(self, op: OpNode) -> VarNode | None:
        """Find out what an op makes of its operand; returns its output if that has a span."""
        rule, x = _RULES.get(op.type), op.input("Input" if op.type in (*_CONVOLUTIONS, "slice") else "X")
        out = op.output("Output" if op.type in _CONVOLUTIONS else "Out")
        if rule is None or x is None or out is None or self._graph.is_overwritten(out):
            return None
        span = Span(x) if self._is_rows(x) else self._of.get(x)
        found = None if span is None else rule(self, op, x, span)
        if found is None or not all(self._is_fixed(n) for n in op.reads() if n is not x):
            return None
        self._of[out], self._before[op] = found, x
        return out

    def _is_fixed(self, node: VarNode) -> bool:
        """Whether a variable is a parameter, a constant, or sizes."""
        return node.persistable or self._graph.constant(node) is not None or self._sizes.holds_sizes(node)

    def operand(self, op: OpNode) -> VarNode | None:
        """What an op looks at rows of that are near to each other."""
        return self._before.get(op)

    def needs(self, out: VarNode, reach: int) -> int:
        """How many rows of padding the source needs, where an output has to have so many, or is not rows again yet."""
        return reach + self._of[out].reach if self._is_rows(out) else reach

    def windows_of(self, op: OpNode) -> Windows | None:
        """Rows of one variable that are put beside one another in their order."""
        nodes, out = op.inputs.get("X", []), op.output("Y")
        found = [self._of.get(n) for n in nodes]
        if op.type != "stack" or out is None or not found or not all(s and s.copied and s.axis == 1 for s in found):
            return None
        first, last = found[0], found[-1]
        assert first is not None
        assert last is not None
        if any(s != first._replace(low=first.low + i, high=first.low + i) for i, s in enumerate(found)):
            return None
        axis = op.attr("axis", 0) % (self._rank(nodes[0]) + 1)
        return Windows(first.source, -first.low, last.high, axis) if first.low <= 0 <= last.high and axis > 1 else None

    def product_of(self, op: OpNode) -> Product | None:
        """What rows are that a convolution of size 1 made."""
        conv = self._producer(op)
        before = None if conv is None or conv.type not in _CONVOLUTIONS else self._producer(conv)
        source = None if before is None else self._before[before]
        if conv is None or before is None or source is None or self._rank(source) != 3 or not self._is_rows(source):
            return None
        weights, last = self._sizes.dims(conv.input("Filter")), str(conv.attr("data_format", "NCHW")).endswith("C")
        plain = weights is not None and weights[2:] == (1, 1) and conv.attr("groups", 1) == 1 and not conv.input("Bias")
        moved = op.type.startswith("squeeze") and before.type.startswith("unsqueeze")
        around = any(conv.attr("paddings", [0, 0])) or any(s != 1 for s in conv.attr("strides", [1, 1]))
        return Product(source, conv.inputs["Filter"][0]) if plain and last and moved and not around else None

    def _producer(self, op: OpNode) -> OpNode | None:
        """The op before, of those that have spans."""
        before = self._before[op].producer if op in self._before else None
        return before if before in self._before else None

    def _rank(self, node: VarNode | None) -> int:
        return len(self._sizes.dims(node) or ())

    def _moved(self, op: OpNode, x: VarNode, span: Span) -> Span | None:
        """Of an op that moves dims behind the first, or adds or removes those of size 1."""
        rank, axes = self._rank(x), list(op.attr("axis", op.attr("axes", ())))
        if len(op.reads()) != 1 or not axes:
            return None
        if op.type.startswith("transpose"):
            return span._replace(axis=axes.index(span.axis), copied=False) if axes[0] == 0 else None
        added = op.type.startswith("unsqueeze")
        if len(axes) > 1 and min(axes) < 0:
            return None
        axes = sorted(a % (rank + added) for a in axes)
        axis = span.axis
        for a in axes:
            axis += added and a <= axis
        gone = 0 if added else sum(a < axis for a in axes)
        return span._replace(axis=axis - gone) if 0 < axes[0] and (added or axis not in axes) else None

    def _padded(self, op: OpNode, x: VarNode, span: Span) -> Span | None:
        if len(op.reads()) != 1 or op.attr("mode", "constant") != "constant":
            return None
        first_dims = 1 if op.attr("data_format", "NCDHW").endswith("C") else 2  # pairs are of the last of these first
        pairs, at = list(op.attr("paddings", ())), first_dims + 2 - span.axis
        if len(pairs) != 6 or not 0 <= at <= 2:
            return None
        before = pairs[2 * at]
        return span.wider(-before, -before, copied=op.attr("value", 0.0) == 0)

    def _sliced(self, op: OpNode, x: VarNode, span: Span) -> Span | None:
        axes, starts = list(op.attr("axes", ())), list(op.attr("starts", ()))
        given = any(op.inputs.get(slot) for slot in ("StartsTensor", "StartsTensorList"))
        if 0 in axes or len(starts) != len(axes) or given or op.attr("decrease_axis", ()):
            return None
        start = starts[axes.index(span.axis)] if span.axis in axes else 0
        return span.wider(start, start, copied=axes == [span.axis]) if start >= 0 else None

    def _convolved(self, op: OpNode, x: VarNode, span: Span) -> Span | None:
        last = op.attr("data_format", "NCHW").endswith("C")
        weights, at = self._sizes.dims(op.input("Filter")), span.axis - (1 if last else 2)
        if weights is None or len(weights) != 4 or not 0 <= at <= 1 or op.attr("strides", [1, 1])[at] != 1:
            return None
        size, dilation = weights[2 + at], op.attr("dilations", [1, 1])[at]
        if not isinstance(size, int):
            return None
        before = _before(op, at, size, dilation)
        return None if before is None else span.wider(-before, dilation * (size - 1) - before, copied=False)

    def _same(self, op: OpNode, x: VarNode, span: Span) -> Span | None:
        """Of an op that computes each element by itself."""
        return span._replace(copied=False) if self._rank(x) == self._rank(op.output("Out")) else None


def _before(op: OpNode, at: int, size: int, dilation: int) -> int | None:
    """How many zeros a convolution puts before a dim; None where that depends on its size."""
    pads = list(op.attr("paddings", [0, 0]))
    algorithm = op.attr("padding_algorithm", "EXPLICIT")
    if algorithm == "EXPLICIT":
        return pads[at] if len(pads) == 2 else pads[2 * at] if len(pads) == 4 else None
    return 0 if algorithm == "VALID" else (size - 1) // 2 if dilation == 1 else None


_RULES: dict[str, Callable[[Spans, OpNode, VarNode, Span], Span | None]] = {
    **dict.fromkeys(("transpose", "transpose2", "unsqueeze", "unsqueeze2", "squeeze", "squeeze2"), Spans._moved),
    **dict.fromkeys(UNARY | BINARY, Spans._same),
    **dict.fromkeys(_CONVOLUTIONS, Spans._convolved),
    "pad3d": Spans._padded,
    "slice": Spans._sliced,
}
