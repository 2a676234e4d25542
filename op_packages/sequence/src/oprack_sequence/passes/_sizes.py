"""Which dims of a graph's variables have the same size in every run, though nobody knows which."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeAlias, cast

from oprack.desc import VarDesc
from oprack.ir import Graph, OpNode, VarNode
from oprack.ir.facts import infer
from oprack.python.interruption import let_interruptions_pass
from oprack.types import EMPTY_VAR

BINARY = frozenset(f"elementwise_{name}" for name in ("add", "sub", "mul", "div", "max", "min", "pow")) | frozenset(
    "equal not_equal less_than less_equal greater_than greater_equal logical_and logical_or logical_xor".split()
)
PRODUCTS = frozenset(("matmul", "matmul_v2"))
RESHAPES = frozenset(("reshape", "reshape2"))
# Primes of this order stand for sizes: what an op's rule makes of them shows which it has added to or multiplied.
_STAND_IN = 100_000_000
_LARGEST = _STAND_IN // 10  # of numbers that attributes and parameters give
_MOST_ADDED = 2000
_MOST_VALUES = 16


class Size:
    """A size that runs decide; two that an op takes for one are one from then on.

    Args:
        declared: What the program says that it is; -1 where it does not.
        factors: Of one that is made of others: times * the product of these + plus.
        times: A number of at least 1.
        plus: A number.
    """

    def __init__(self, declared: int = -1, factors: Sequence[Size] = (), times: int = 1, plus: int = 0) -> None:
        self._same: Size | None = None
        self._declared = declared
        self._made_of = (tuple(factors), times, plus)

    def root(self) -> Size:
        """The one that stands for all that are the same."""
        size = self
        while size._same is not None:
            size = size._same
        return size

    def merge(self, other: Size) -> None:
        """Take both for one: an op that combines them element by element fails otherwise, or repeats one of size 1."""
        a, b = self.root(), other.root()
        if a is not b:
            if b._made_of[0] and a not in b.made_of[0]:
                a, b = b, a
            b._same = a
            a._declared = max(a._declared, b._declared)

    @property
    def made_of(self) -> tuple[list[Size], int, int]:
        """(factors, times, plus), itself alone where it is made of no others."""
        factors, times, plus = self.root()._made_of
        return sorted((f.root() for f in factors), key=id) or [self.root()], times, plus

    def is_declared(self, number: int) -> bool:
        """Whether the program says that it is this number."""
        return self.root()._declared == number


Dim: TypeAlias = "int | Size"
Dims: TypeAlias = "tuple[Dim, ...]"
Found: TypeAlias = "list[tuple[VarNode, Dims | None]]"


def same(a: Dim, b: Dim) -> bool:
    """Whether two dims are one."""
    return a.made_of == b.made_of if isinstance(a, Size) and isinstance(b, Size) else a == b


def product(factors: Sequence[Size], times: int = 1) -> Size:
    """The size of dims that are made one."""
    found, known = list[Size](), True
    for size in factors:
        more, by, plus = size.made_of
        found, times, known = found + more, times * by, known and plus == 0
    if not known:
        return Size()
    return found[0] if times == 1 and len(found) == 1 else Size(factors=found, times=times)


def shifted(dim: Dim, by: int) -> Dim:
    """A size and a number."""
    if isinstance(dim, int):
        return dim + by
    factors, times, plus = dim.made_of
    return product(factors, times) if plus + by == 0 else Size(factors=factors, times=times, plus=plus + by)


class Sizes:
    """Dims of all variables of a graph: numbers that its attributes and parameters give, or a Size.

    The ops' own rules say what becomes of a size: they are asked with numbers that stand for sizes.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._dims: dict[VarNode, Dims | None] = {}
        self._values: dict[VarNode, Dims] = {}  # of variables that hold sizes
        for op in graph.ops:
            self._follow(op)

    def dims(self, node: VarNode | None) -> Dims | None:
        """The dims of a variable; None when not even their number is known."""
        if node is None or node.name == EMPTY_VAR:
            return None
        if node not in self._dims:
            # A size that is fed is one of its own even where the program fixes it: 128 may be a width elsewhere.
            fixed = node.persistable or not (node.producer is None or node.producer.type == "feed")
            shape = node.shape
            expected = node.expected_shape or ()
            if shape is not None and len(expected) != len(shape):
                expected = shape
            self._dims[node] = (
                None
                if shape is None
                else tuple(d if fixed and d >= 0 else Size(e) for d, e in zip(shape, expected, strict=True))
            )
        return self._dims[node]

    def holds_sizes(self, node: VarNode) -> bool:
        """Whether a variable holds sizes of others."""
        return node in self._values

    def _follow(self, op: OpNode) -> None:
        if op.opaque or op.runs_itself or op.malformed:
            return
        if op.type in ("shape", "slice", "cast", "scale", "assign", "concat", "stack"):
            self._follow_values(op)
        if op.type == "concat":
            self._merge_beside(op)
        own = next((rule for types, rule in _OWN if op.type in types), None)
        found = None if own is None else own(self, op)
        for node, dims in self._by_rule(op) if found is None else found:
            self._dims[node] = dims

    # Dims -------------------------------------------------------------------------------------------------------------
    def _binary(self, op: OpNode) -> Found | None:
        x, y, out = self.dims(op.input("X")), self.dims(op.input("Y")), op.output("Out")
        if x is None or y is None or out is None:
            return None
        axis = op.attr("axis", -1)
        if len(x) < len(y):
            x, y = y, x
        start = len(x) - len(y) if axis == -1 else axis
        if start < 0 or start + len(y) > len(x):
            return None
        found = list(x)
        for i, d in enumerate(y, start):
            found[i] = _broadcast(found[i], d)
        return [(out, tuple(found))]

    def _product(self, op: OpNode) -> Found | None:
        """Of two factors, whose dims before the last two are the same."""
        x, y, out = self.dims(op.input("X")), self.dims(op.input("Y")), op.output("Out")
        if x is None or y is None or out is None or min(len(x), len(y)) < 2 or op.attr("head_number", 1) != 1:
            return None
        rows = x[-1] if op.attr("transpose_X", op.attr("trans_x", False)) else x[-2]
        columns = y[-2] if op.attr("transpose_Y", op.attr("trans_y", False)) else y[-1]
        longer, shorter = (x[:-2], y[:-2]) if len(x) >= len(y) else (y[:-2], x[:-2])
        start = len(longer) - len(shorter)
        leading = [*longer[:start], *map(_broadcast, longer[start:], shorter)]
        return [(out, (*leading, rows, columns))]

    def _layer_norm(self, op: OpNode) -> Found | None:
        out = op.output("Y")
        return None if out is None else [(out, self.dims(op.input("X")))]

    def _sliced(self, op: OpNode) -> Found | None:
        """Of a slice whose ends variables hold, such as [j : S + j]."""
        x, out, axes = self.dims(op.input("Input")), op.output("Out"), list(op.attr("axes", ()))
        tensors = [*op.inputs.get("EndsTensor", []), *op.inputs.get("EndsTensorList", [])]
        ends, starts = self._joined(tensors), list(op.attr("starts", ()))
        plain = len(axes) == len(starts) == len(ends or ()) == 1 and not op.attr("decrease_axis", ())
        if out is None or x is None or not ends or not plain or len(op.reads()) != 1 + len(tensors):
            return None
        whole, end, start = x[axes[0]], ends[0], starts[0]
        if not isinstance(whole, Size) or not isinstance(end, Size) or whole.made_of[:2] != end.made_of[:2]:
            return None
        if not 0 <= start <= end.made_of[2] <= whole.made_of[2]:
            return None
        return [(out, tuple(shifted(end, -start) if i == axes[0] else d for i, d in enumerate(x)))]

    def _merge_beside(self, op: OpNode) -> None:
        """What is joined along one dim has the same others."""
        first, *others = (self.dims(n) for n in op.inputs.get("X", []))
        for dims in others:
            if first is None or dims is None or len(first) != len(dims) or not first:
                return
            for i, (a, b) in enumerate(zip(first, dims, strict=True)):
                if i != op.attr("axis", 0) % len(first):
                    _broadcast(a, b)

    def _by_values(self, op: OpNode) -> Found | None:
        """Of an op whose result has the dims that variables hold."""
        values, out = self._wanted(op), op.output("Out")
        if values is None or out is None:
            return None
        x = self.dims(op.input("X"))
        if x is not None:
            values = tuple(x[i] if d == 0 and i < len(x) else d for i, d in enumerate(values))
            values = _with_rest(values, x)
        return None if values is None else [(out, values)]

    def _counted(self, op: OpNode) -> Found | None:
        """Of 0, 1, 2, ... up to a size."""
        (start, step), end = (self._joined(op.inputs.get(s, [])) for s in ("Start", "Step")), op.inputs.get("End", [])
        values, out = self._joined(end), op.output("Out")
        plain = start == (0,) and step == (1,) and values is not None and len(values) == 1
        return [(out, values)] if plain and out is not None else None

    def _wanted(self, op: OpNode) -> Dims | None:
        """The dims that an op is told: by variables, else by an attribute."""
        one = op.input("Shape") if op.type in RESHAPES else op.input("ShapeTensor")
        several = op.inputs.get("ShapeTensor" if op.type in RESHAPES else "ShapeTensorList", [])
        if op.type in RESHAPES and several:
            return self._joined(several)
        if one is not None:
            return self._joined([one])
        return self._joined(several) if several else tuple(op.attr("shape", ()))

    def _by_rule(self, op: OpNode) -> Found:
        """By the op's own rule, with numbers for sizes; what it does not tell is what holds in every run."""
        stand_ins: dict[Size, int] = {}

        def fact(node: VarNode) -> VarDesc | None:
            dims = self.dims(node)
            if node.name == EMPTY_VAR:
                return None
            known = node.fact.clone()
            known.shape = None if dims is None else tuple(_number(d, stand_ins) for d in dims)
            return known

        facts = {slot: [fact(n) for n in nodes] for slot, nodes in op.inputs.items()}
        outputs = {slot: [n.fact for n in nodes] for slot, nodes in op.outputs.items()}
        try:
            results = infer(op.desc, facts, outputs, self._graph.manager.op_info(op.type))
        except Exception:
            let_interruptions_pass()
            return []  # it takes two sizes for one, or has no rule
        return [
            (node, None if found.shape is None else tuple(_size(d, stand_ins) for d in found.shape))
            for slot, nodes in op.outputs.items()
            for node, found in zip(nodes, results[slot], strict=True)
        ]

    # Variables that hold sizes ----------------------------------------------------------------------------------------
    def _follow_values(self, op: OpNode) -> None:
        out = op.output("Out")
        values = self._values_of(op)
        if out is not None and values is not None:
            self._values[out] = values

    def _values_of(self, op: OpNode) -> Dims | None:
        if op.type == "shape":
            return self.dims(op.input("Input"))
        if op.type in ("concat", "stack"):
            return self._joined(op.inputs.get("X", []))
        held = self._joined(op.inputs.get("Input" if op.type == "slice" else "X", []))
        if held is None or op.type in ("cast", "assign"):
            return held
        if op.type == "scale":
            bias = op.attr("bias", 0.0)
            whole = op.attr("scale", 1.0) == 1 and bias == int(bias) and len(op.reads()) == 1
            return tuple(shifted(d, int(bias)) for d in held) if whole else None
        starts, ends = op.attr("starts", ()), op.attr("ends", ())
        plain = list(op.attr("axes", ())) == [0] and len(starts) == len(ends) == 1 == len(op.reads())
        return held[starts[0] : ends[0]] if plain else None

    def _joined(self, nodes: Sequence[VarNode]) -> Dims | None:
        found: list[Dim] = []
        for node in nodes:
            held = self._values.get(node)
            if held is None:
                known = self._graph.constant_array(node)
                if known is None or known.size > _MOST_VALUES or known.dtype.kind not in "iu":
                    return None
                held = tuple(known.reshape(-1).tolist())
            found += held
        return tuple(found)


_OWN: tuple[tuple[frozenset[str], Callable[[Sizes, OpNode], Found | None]], ...] = (
    (BINARY, Sizes._binary),
    (PRODUCTS, Sizes._product),
    (RESHAPES | {"fill_constant"}, Sizes._by_values),
    (frozenset(("range",)), Sizes._counted),
    (frozenset(("layer_norm",)), Sizes._layer_norm),
    (frozenset(("slice",)), Sizes._sliced),
)


def _broadcast(a: Dim, b: Dim) -> Dim:
    """The dim of a result that is computed element by element."""
    if isinstance(a, Size) and isinstance(b, Size):
        a.merge(b)
        return a
    if isinstance(a, Size):
        return a if b == 1 or a.is_declared(cast("int", b)) else b
    return _broadcast(b, a) if isinstance(b, Size) else max(a, b)


def _number(dim: Dim, stand_ins: dict[Size, int]) -> int:
    return dim if isinstance(dim, int) else stand_ins.setdefault(dim.root(), _stand_in(len(stand_ins)))


@cache
def _stand_in(count: int) -> int:
    """A prime, far from the others."""
    first = _STAND_IN + 10 * _MOST_ADDED * count
    return next(n for n in itertools.count(first) if all(n % d for d in range(2, math.isqrt(n) + 1)))


def _size(number: int, stand_ins: Mapping[Size, int]) -> Dim:
    """What a number is that an op's rule made of those that stand for sizes."""
    if 0 <= number < _LARGEST:
        return number
    for size, prime in stand_ins.items():
        if abs(number - prime) <= _MOST_ADDED:
            return shifted(size, number - prime)
    factors = list[Size]()
    for size, prime in stand_ins.items():
        while number > 0 and number % prime == 0:
            number //= prime
            factors.append(size)
    return product(factors, number) if factors and 0 < number < _LARGEST else Size()


def _with_rest(wanted: Dims, x: Dims) -> Dims | None:
    """Dims of a reshape of `x`, one of which may be -1; None where they can't be told."""
    if -1 not in wanted:
        return wanted
    left = [d.root() for d in x if isinstance(d, Size)]
    for d in wanted:
        if isinstance(d, Size):
            if d.root() not in left:
                return None
            left.remove(d.root())
    have = math.prod(d for d in x if isinstance(d, int))
    given = math.prod(d for d in wanted if isinstance(d, int) and d != -1)
    if not given or have % given:
        return None
    rest = product(left, have // given) if left else have // given
    return tuple(rest if d == -1 else d for d in wanted)
