"""LoD as ONNX has it: the rows of all sequences, and int64 offsets of each level beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import helper
from oprack.errors import OprackError, UnimplementedError
from oprack.op.desc_rules import DescInferShapeContext, infer_op
from oprack.packs import op_info
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, full
from oprack_onnx.export.graph import Call, Graph
from oprack_onnx.values import ELEM_TYPES


def share_lod(call: Call) -> None:
    """Give the outputs of an op the LoD that its rule of shapes shares, unless its form has set them."""
    graph = call.graph
    shared: dict[str, list[str]] = {}
    if any(graph.lod(n) for n in call.op.input_arg_names()):

        class Shares(DescInferShapeContext):
            """Keeps which LoD is shared, and nothing else."""

            def share_lod(self, source: str, target: str, i: int = 0, j: int = 0) -> None:
                sources, targets = self.input_names(source), self.output_names(target)
                if i < len(sources) and j < len(targets):
                    shared[targets[j]] = graph.lod(sources[i])

            def set_dim(self, slot: str, dims: Sequence[int], i: int = 0) -> None:
                """The program has them."""

            def set_lod_level(self, slot: str, level: int, i: int = 0) -> None:
                """Forms say what offsets there are."""

        try:
            infer_op(call.op, graph.block, op_info(call.type), shapes=Shares)
        except OprackError:  # a shape that only a run knows
            pass
    for name in call.op.output_arg_names():
        if name not in call.told:
            graph.lods[name] = shared.get(name, [])


class Sequences:
    """The sequences of the last level of an input.

    Args:
        call: The op.
        slot: The input.
        i: Which of a slot's.

    Raises:
        UnimplementedError: The input has no offsets.
    """

    def __init__(self, call: Call, slot: str = "X", i: int = 0, level: int = -1) -> None:
        levels = call.graph.lod(call.name(slot, i))
        if not levels:
            raise UnimplementedError(f"{slot} has no LoD; declare its variable with a lod_level")
        self.levels = [Expr(call.graph, n, VarType.INT64) for n in levels]
        self.offsets = self.levels[level]

    @property
    def starts(self) -> Expr:
        """Where each begins."""
        return self.offsets.slice(0, -1)

    @property
    def ends(self) -> Expr:
        """Where each ends."""
        return self.offsets.slice(1, LAST)

    @property
    def lengths(self) -> Expr:
        """How many rows each has."""
        return self.ends - self.starts

    @property
    def count(self) -> Expr:
        """How many there are, in one row."""
        return self.offsets.size(0) - 1

    @property
    def rows(self) -> Expr:
        """How many rows there are, in one row."""
        return self.offsets.slice(-1, LAST)

    def ids(self) -> Expr:
        """The sequence of each row."""
        return ids_of(self.offsets)

    def positions(self) -> Expr:
        """The place of each row in its sequence."""
        return arange(self.rows) - self.starts.gather(self.ids())

    def padded(self, backwards: bool = False) -> tuple[Expr, Expr]:
        """Rows laid out as [steps, sequences]: which (0 where there is none), and whether there is one."""
        lengths = self.lengths
        step = arange(lengths.max()).unsqueeze(1)
        there = step < lengths.unsqueeze(0)
        row = self.ends.unsqueeze(0) - 1 - step if backwards else self.starts.unsqueeze(0) + step
        return there.select(row, 0), there

    def unpadded(self, steps: Expr, backwards: bool = False) -> Expr:
        """Rows of what stands as [steps, sequences, ...]."""
        ids = self.ids()
        place = self.ends.gather(ids) - 1 - arange(self.rows) if backwards else self.positions()
        return steps.op("GatherND", place.unsqueeze(1).join(ids.unsqueeze(1), axis=1))


def ids_of(offsets: Expr) -> Expr:
    """The sequence of each row: how many sequences have ended before it."""
    rows = offsets.slice(-1, LAST)
    inner = offsets.slice(1, -1)
    marks = full(rows + 1, 0, VarType.INT64).scatter_add(inner, full(inner.shape(), 1, VarType.INT64))
    return marks.cumsum().slice(0, -1)


def offsets_of(lengths: Expr) -> Expr:
    """Offsets of sequences of these lengths."""
    return lengths.ints([0]).join(lengths.cumsum(), axis=0)


def ranges(starts: Expr, lengths: Expr) -> Expr:
    """The ranges start, start + 1 ... of these lengths, one behind the other."""
    offsets = offsets_of(lengths)
    ids = ids_of(offsets)
    return arange(offsets.slice(-1, LAST)) + (starts - offsets.slice(0, -1)).gather(ids)


def set_lod(call: Call, levels: Sequence[Expr], slot: str = "Out", i: int = 0) -> None:
    """Set the offsets of an output."""
    names = call.op.output(slot)
    if i < len(names):
        call.told.add(names[i])
        call.graph.lods[names[i]] = [v.name for v in levels]


Step = Callable[[list[Expr], list[Expr]], tuple[list[Expr], list[Expr]]]


def scan(
    call: Call,
    states: Sequence[Expr],
    inputs: Sequence[Expr],
    step: Step,
    ranks: Sequence[int],
    *,
    backwards: bool = False,
) -> list[Expr]:
    """A Scan over the first axis of some values.

    Args:
        call: The op.
        states: What goes from step to step, as it is before the first one.
        inputs: What is taken slice by slice.
        step: From the states and slices to the next states and to what is collected.
        ranks: Of the states, and of what is collected in a step.
        backwards: From the last slice to the first.

    Returns:
        The last states, and what was collected.
    """
    inner = Graph(call.graph.block, call.graph)
    own = [Expr(inner, inner.fresh("state"), s.dtype) for s in states]
    slices = [Expr(inner, inner.fresh("slice"), v.dtype) for v in inputs]
    following, collected = step(own, slices)
    results = [v.op("Identity") for v in (*following, *collected)]
    body = helper.make_graph(
        inner.nodes,
        "step",
        [helper.make_tensor_value_info(v.name, ELEM_TYPES[v.dtype], None) for v in (*own, *slices)],
        [
            helper.make_tensor_value_info(v.name, ELEM_TYPES[v.dtype], [None] * rank)
            for v, rank in zip(results, ranks, strict=True)
        ],
    )
    attrs: dict[str, Any] = {"body": body, "num_scan_inputs": len(inputs)}
    if backwards:
        attrs |= {"scan_input_directions": [1] * len(inputs), "scan_output_directions": [1] * len(collected)}
    given = [*states, *inputs]
    names = call.graph.node("Scan", [v.name for v in given], len(results), **attrs)
    listed = [names] if len(results) == 1 else names
    return [Expr(call.graph, n, v.dtype) for n, v in zip(listed, results, strict=True)]
