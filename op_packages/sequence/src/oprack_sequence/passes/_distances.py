"""Variables whose elements depend on two positions by their distance alone, as biases of relative positions do."""

from __future__ import annotations

from typing import TypeAlias

from oprack.ir import Graph, OpNode, VarNode

from oprack_sequence.passes._masks import number_of
from oprack_sequence.passes._rules import UNARY
from oprack_sequence.passes._sizes import BINARY, Sizes, same

Axes: TypeAlias = "frozenset[int]"


class Distances:
    """What is computed of positions 0, 1, 2, ... along dims.

    Args:
        graph: The graph.
        sizes: The dims of its variables.
    """

    def __init__(self, graph: Graph, sizes: Sizes) -> None:
        self._graph, self._sizes = graph, sizes
        self._axes: dict[VarNode, Axes] = {}  # one dim: the positions along it; two: by the distance between them
        for op in graph.ops:
            out, found = op.output("Out"), None
            if out is not None and not (op.opaque or op.malformed or op.hidden_writes):
                found = self._made(op)
            if out is not None and found is not None and not graph.is_overwritten(out):
                self._axes[out] = found

    def bias_of(self, node: VarNode) -> VarNode | None:
        """[1, heads, S, S] that depends on the last two dims by their distance, from which a variable is repeated."""
        maker = node.producer
        if maker is not None and maker.type == "expand_v2" and not maker.opaque:
            node = maker.input("X") or node
        dims = self._sizes.dims(node)
        if dims is None or len(dims) != 4 or dims[0] != 1 or not same(dims[2], dims[3]):
            return None
        return node if self._axes.get(node) == frozenset((2, 3)) else None

    def _made(self, op: OpNode) -> Axes | None:
        if op.type == "range":
            counted = number_of(self._graph, op.input("Start")) == 0 and number_of(self._graph, op.input("Step")) == 1
            return frozenset((0,)) if counted else None
        if op.type in ("transpose", "transpose2", "unsqueeze", "unsqueeze2"):
            return self._moved(op)
        if op.type in BINARY or op.type == "where":
            return self._combined(op)
        x = self._axes.get(op.input("Ids") or op.input("X") or op.outputs["Out"][0])
        if x is None or (len(x) == 1 and op.type not in ("assign", "cast")):
            return None
        if op.type == "lookup_table_v2":
            return x
        return x if op.type in UNARY and len(op.reads()) == 1 else None

    def _moved(self, op: OpNode) -> Axes | None:
        x, axes = self._axes.get(op.input("X") or op.outputs["Out"][0]), list(op.attr("axis", op.attr("axes", ())))
        if x is None or len(op.reads()) != 1 or not axes:
            return None
        if op.type.startswith("transpose"):
            return frozenset(axes.index(a) for a in x)
        rank = len(self._sizes.dims(op.outputs["Out"][0]) or ())
        if len(axes) != 1 or not -rank <= axes[0] < rank:
            return None
        return frozenset(a + (a >= axes[0] % rank) for a in x)

    def _combined(self, op: OpNode) -> Axes | None:
        """Of several operands: a difference of positions, or what has the same distances."""
        operands = op.reads()
        known = [self._axes[n] for n in operands if n in self._axes]
        others = [n for n in operands if n not in self._axes]
        if not known or any(number_of(self._graph, n) is None for n in others):
            return None
        ranks = {len(self._sizes.dims(n) or ()) for n in operands if n in self._axes}
        if len(ranks) > 1:
            return None
        if all(len(k) == 1 for k in known):
            a, b = (*known, known[0])[:2]
            return a | b if op.type == "elementwise_sub" and len(known) == 2 and a != b else None
        return known[0] if len(set(known)) == 1 else None
