"""Attention as padded programs write it, op by op: what each variable between queries and context stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from oprack.ir import Graph, OpNode, VarNode

from oprack_sequence.passes._distances import Distances
from oprack_sequence.passes._masks import Mask, mask_of, number_of, terms
from oprack_sequence.passes._sizes import PRODUCTS, Sizes, same


class Turned(NamedTuple):
    """factor * rows [B, S, heads, D] as [B, heads, S, D], or flipped, as [B, heads, D, S].

    Queries may be of another text [B, S', heads, D], as those of decoders are.
    """

    rows: VarNode
    flipped: bool = False
    factor: float = 1.0


class Scores(NamedTuple):
    """factor * queries * keys + bias, [B, heads, S, S]; where `masked`, keys of padding are lowered."""

    q: VarNode
    k: VarNode
    factor: float
    masked: bool = False
    bias: VarNode | None = None


class Weights(NamedTuple):
    """factor * softmax of scores."""

    scores: Scores
    factor: float = 1.0


class Context(NamedTuple):
    """factor * weights * values, [B, heads, S, D]."""

    scores: Scores
    v: VarNode
    factor: float


Form: TypeAlias = "Turned | Scores | Weights | Context"
_SERVED = ({"float32"}, {"float64"})
TRANSPOSES = frozenset(("transpose", "transpose2"))


class Forms:
    """The forms of the variables of a graph, for one mask.

    Args:
        graph: The graph.
        sizes: The dims of its variables.
        mask: Which places are kept.
        distances: What depends on two positions by their distance.
        is_rows: Whether a variable is [B, S, ...].
    """

    def __init__(
        self,
        graph: Graph,
        sizes: Sizes,
        mask: Mask,
        distances: Distances,
        is_rows: Callable[[VarNode | None], bool],
    ) -> None:
        self._graph, self._sizes, self._mask, self._is_rows = graph, sizes, mask, is_rows
        self._distances = distances
        self._of: dict[VarNode, Form] = {}

    def of(self, node: VarNode | None) -> Form | None:
        """The form of a variable that has one."""
        return None if node is None else self._of.get(node)

    def follow(self, op: OpNode) -> VarNode | None:
        """Find out what an op makes of its operands; returns the output that has a form, if one has."""
        out, found = op.output("Out"), self._made(op)
        if out is None or found is None:
            return None
        self._of[out] = found
        return out

    def needs(self, op: OpNode, node: VarNode, reach: int) -> int | None:
        """How many rows of padding around others an operand has to have where the output has so many; None: all."""
        out = self.of(op.output("Out"))
        if isinstance(out, Turned) and not self._is_rows(out.rows):
            return None  # of another text
        scores = out if isinstance(out, Scores) else out.scores if isinstance(out, Weights | Context) else None
        if scores is None:
            return reach
        if reach and scores.bias is not None:
            return None  # distances count from the first row of queries and of keys
        is_query = op.type not in PRODUCTS or node is op.input("X")
        return reach if is_query else 0  # padding has no weight

    def context_of(self, op: OpNode) -> Context | None:
        """What a transpose turns back into rows."""
        x = self.of(op.input("X"))
        back = op.type in TRANSPOSES and list(op.attr("axis", ())) == [0, 2, 1, 3]
        return x if back and isinstance(x, Context) else None

    def _made(self, op: OpNode) -> Form | None:
        x, y = self.of(op.input("X")), self.of(op.input("Y"))
        if op.type in TRANSPOSES:
            return self._transposed(op, x)
        if op.type in PRODUCTS:
            return self._product(op, x, y)
        if op.type == "softmax":
            over_keys = op.attr("axis", -1) in (-1, 3)
            return Weights(x) if isinstance(x, Scores) and x.masked and over_keys else None
        if op.type == "dropout":
            return self._dropped(op, x)
        if op.type == "assign":
            return x
        if op.type == "elementwise_add":
            return self._added(op, x, y)
        factor = self._factor(op)
        if factor is None or x is None or isinstance(x, Context) or (isinstance(x, Scores) and (x.masked or x.bias)):
            return None
        return x._replace(factor=x.factor * factor)

    def _transposed(self, op: OpNode, x: Form | None) -> Turned | None:
        axes, node = list(op.attr("axis", ())), op.input("X")
        if isinstance(x, Turned):
            return x._replace(flipped=not x.flipped) if axes == [0, 1, 3, 2] else None
        dims = self._sizes.dims(node)
        if node is None or dims is None or len(dims) != 4 or not same(dims[0], self._mask.dims[0]):
            return None
        if not all(isinstance(d, int) and d > 0 for d in dims[2:]):
            return None
        return Turned(node, axes == [0, 2, 3, 1]) if axes in ([0, 2, 1, 3], [0, 2, 3, 1]) else None

    def _product(self, op: OpNode, x: Form | None, y: Form | None) -> Form | None:
        swapped = bool(op.attr("transpose_Y", op.attr("trans_y", False)))
        turned = op.attr("transpose_X", op.attr("trans_x", False)) or op.attr("head_number", 1) != 1
        if turned or not isinstance(y, Turned) or not self._is_rows(y.rows):
            return None
        alpha = float(op.attr("alpha", 1.0))
        if {n.dtype for n in op.reads()} not in _SERVED:
            return None
        if isinstance(x, Turned) and not x.flipped and swapped != y.flipped and self._same_heads(x.rows, y.rows, 2):
            return Scores(x.rows, y.rows, x.factor * y.factor * alpha)
        if isinstance(x, Weights) and not swapped and not y.flipped and self._same_heads(x.scores.k, y.rows, 1):
            return Context(x.scores, y.rows, x.factor * y.factor * alpha)
        return None

    def _same_heads(self, a: VarNode, b: VarNode, count: int) -> bool:
        """Whether the first dims behind those of rows are the same numbers: heads, and their width."""
        x, y = self._sizes.dims(a), self._sizes.dims(b)
        return x is not None and y is not None and all(map(same, x[2 : 2 + count], y[2 : 2 + count]))

    def _dropped(self, op: OpNode, x: Form | None) -> Weights | None:
        if not isinstance(x, Weights) or not op.attr("is_test", False):
            return None
        kept = 1.0 if op.attr("dropout_implementation") == "upscale_in_train" else 1 - op.attr("dropout_prob", 0.5)
        return x._replace(factor=x.factor * kept)

    def _added(self, op: OpNode, x: Form | None, y: Form | None) -> Scores | None:
        """Scores and a mask, or a bias of relative positions."""
        scores, added = (x, op.input("Y")) if isinstance(x, Scores) else (y, op.input("X"))
        if not isinstance(scores, Scores) or added is None:
            return None
        found = self._with(scores, added)
        if found is not None:
            return found
        for term in terms(added):
            scores = None if scores is None else self._with(scores, term)
        return scores

    def _with(self, scores: Scores, added: VarNode) -> Scores | None:
        if not scores.masked and self._mask.is_of(mask_of(self._graph, self._sizes, added)):
            return scores._replace(masked=True)
        bias = self._distances.bias_of(added) if scores.bias is None and self._is_rows(scores.q) else None
        dims, q = self._sizes.dims(bias), self._sizes.dims(scores.q)
        if bias is None or dims is None or q is None or not (same(dims[1], q[2]) and same(dims[3], self._mask.dims[1])):
            return None
        return scores._replace(bias=bias) if bias.dtype == scores.q.dtype is not None else None

    def _factor(self, op: OpNode) -> float | None:
        """The number with which an op multiplies."""
        if op.type == "scale":
            plain = op.attr("bias", 0.0) == 0 and not op.input("ScaleTensor")
            return float(op.attr("scale", 1.0)) if plain else None
        number = number_of(self._graph, op.input("Y"))
        if op.type == "elementwise_mul":
            return number
        return 1 / number if op.type == "elementwise_div" and number else None
