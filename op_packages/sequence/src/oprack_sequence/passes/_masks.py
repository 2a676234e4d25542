"""What is added to the scores of attention, followed back to a mask [B, S] of the places that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from oprack.ir import Graph, OpNode, VarNode

from oprack_sequence.passes._sizes import Dim, Sizes, same

ENOUGH = 9999.0
"""By how much a score is lowered, at least, so that its weight is 0: e^-9999 is far below what any float holds."""

_FILLS = frozenset("fill_any_like fill_constant fill_constant_batch_size_like fill_zeros_like".split())
_RESHAPES = frozenset("reshape reshape2 unsqueeze unsqueeze2 squeeze squeeze2".split())
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "elementwise_add": lambda a, b: a + b,
    "elementwise_sub": lambda a, b: a - b,
    "elementwise_mul": lambda a, b: a * b,
    "elementwise_div": lambda a, b: a / b,
}


class Flags(NamedTuple):
    """Numbers that depend on one variable of 0 and 1, element by element.

    Attributes:
        source: The variable: of bools, or of numbers that have to be 0 and 1.
        at0: The number where the source is 0.
        at1: The number where it is 1.
    """

    source: VarNode
    at0: float
    at1: float

    def mapped(self, function: Callable[[float], float]) -> Flags:
        """A function of these numbers."""
        return Flags(self.source, function(self.at0), function(self.at1))


class Mask(NamedTuple):
    """Which places of a padded batch are kept.

    Attributes:
        source: Variable with the dims of the batch, and perhaps others of size 1.
        kept: Its value where a place is kept, 0 or 1.
        dims: (B, S).
    """

    source: VarNode
    kept: int
    dims: tuple[Dim, Dim]

    def is_of(self, other: Mask | None) -> bool:
        """Whether both keep the same places."""
        return other is not None and (other.source, other.kept) == (self.source, self.kept)


def number_of(graph: Graph, node: VarNode | None) -> float | None:
    """The value of a constant of one element; None for any other variable."""
    value = None if node is None else graph.constant_array(node)
    return float(value.item()) if value is not None and value.size == 1 and value.dtype.kind in "biuf" else None


def flags_of(graph: Graph, node: VarNode) -> Flags:
    """What a variable depends on; on itself where its op does more than to compute with one variable and numbers."""
    op = node.producer
    found = None
    if node.dtype != "bool" and op is not None and not (op.opaque or op.malformed or op.hidden_writes):
        found = _through(graph, op)
    return found or Flags(node, 0.0, 1.0)


def _through(graph: Graph, op: OpNode) -> Flags | None:
    x = op.input("X")
    if op.type == "where":
        return _chosen(graph, op)
    if op.type in _ARITHMETIC:
        return _computed(graph, op)
    if x is None or (len(op.reads()) > 1):
        return None
    if op.type in _RESHAPES or op.type in ("cast", "assign"):
        return flags_of(graph, x)
    if op.type != "scale":
        return None
    factor, bias, after = op.attr("scale", 1.0), op.attr("bias", 0.0), op.attr("bias_after_scale", True)
    return flags_of(graph, x).mapped(lambda v: v * factor + bias if after else (v + bias) * factor)


def _computed(graph: Graph, op: OpNode) -> Flags | None:
    """Numbers and a constant."""
    x, y, function = op.input("X"), op.input("Y"), _ARITHMETIC[op.type]
    a, b = number_of(graph, x), number_of(graph, y)
    if x is not None and b is not None and (b or op.type != "elementwise_div"):
        return flags_of(graph, x).mapped(lambda v: function(v, b))
    if y is not None and a is not None and op.type != "elementwise_div":
        return flags_of(graph, y).mapped(lambda v: function(a, v))
    return None


def _chosen(graph: Graph, op: OpNode) -> Flags | None:
    """One of two constants."""
    condition = op.input("Condition")
    yes, no = number_of(graph, op.input("X")), number_of(graph, op.input("Y"))
    return None if condition is None or yes is None or no is None else Flags(condition, no, yes)


def mask_of(graph: Graph, sizes: Sizes, added: VarNode) -> Mask | None:
    """The mask by which [B, 1, 1, S] lowers scores so far that weights of padding are 0; None for anything else."""
    dims = sizes.dims(added)
    if dims is None or len(dims) != 4 or dims[1] != 1 or dims[2] != 1:
        return None
    flags = flags_of(graph, added)
    gap = flags.at1 - flags.at0
    places = batch_dims(sizes, flags.source)
    if not abs(gap) >= ENOUGH or places is None or not (same(places[0], dims[0]) and same(places[1], dims[3])):
        return None
    maker = flags.source.producer
    if graph.constant(flags.source) is not None or (maker is not None and maker.type in _FILLS):
        return None  # nothing is padding, or the same is in every run
    return Mask(flags.source, int(gap > 0), places)


def terms(node: VarNode) -> list[VarNode]:
    """What a variable is the sum of, as masks and biases are added to each other before they are to scores."""
    op = node.producer
    if op is None or op.type != "elementwise_add" or op.opaque or op.malformed:
        return [node]
    return [n for slot in ("X", "Y") for n in op.inputs.get(slot, [])]


def batch_dims(sizes: Sizes, node: VarNode) -> tuple[Dim, Dim] | None:
    """The first and the last dim of a variable, if all between are 1."""
    dims = sizes.dims(node)
    if dims is None or len(dims) < 2 or any(d != 1 for d in dims[1:-1]):
        return None
    return dims[0], dims[-1]
