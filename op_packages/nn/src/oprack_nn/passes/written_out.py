"""layer_norm, gelu, swish and hard_swish written as means, squares, erf ... become the ops that they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oprack.ir import Fusion, Match, NewParam, NewVar, OpNode, PatternBuilder, VarNode, fusion


class _Number:
    """x times, divided by or raised to a number; x plus a number: as a scale, or with a parameter of one element."""

    def __init__(self, name: str, *ops: Any) -> None:
        self.name, self.patterns = name, ops

    def _operand(self, m: Match, op: OpNode) -> float | None:
        value, x = m.value(self.name), m["x"].shape
        return value.item() if value.size == 1 and x is not None and value.ndim <= len(x) else None

    def _found(self, m: Match) -> OpNode:
        return next(m.op_of(op) for op in self.patterns if m.has(op))


class _Factor(_Number):
    def __init__(self, p: PatternBuilder, x: Any, name: str) -> None:
        scaled = p.op("scale", X=x, attrs={"bias": 0.0})
        times = p.op("elementwise_mul", X=x, Y=p.param(name), commutative=True)
        over = p.op("elementwise_div", X=x, Y=p.param(name))
        super().__init__(name, scaled, times, over)

    def value(self, m: Match) -> float | None:
        op = self._found(m)
        if op.type == "scale":
            return m.attr(op, "scale")
        number = self._operand(m, op)
        return None if not number else number if op.type == "elementwise_mul" else 1 / number


class _Shift(_Number):
    def __init__(self, p: PatternBuilder, x: Any, name: str) -> None:
        shifted = p.op("scale", X=x, attrs={"scale": 1.0})
        plus = p.op("elementwise_add", X=x, Y=p.param(name), commutative=True)
        super().__init__(name, shifted, plus)

    def value(self, m: Match) -> float | None:
        op = self._found(m)
        return m.attr(op, "bias") if op.type == "scale" else self._operand(m, op)


class _Power(_Number):
    """x to the power 2 or 3."""

    def __init__(self, p: PatternBuilder, x: Any, name: str, exponent: int) -> None:
        self.exponent = exponent
        powers = [p.op("pow", X=x), p.op("elementwise_pow", X=x, Y=p.param(name))]
        squares = [p.op("square", X=x), p.op("elementwise_mul", X=x, Y=x)]
        if exponent == 3:
            squares = [p.op("elementwise_mul", X=square, Y=x, commutative=True) for square in squares]
        self.written = squares
        super().__init__(name, *powers, *squares)

    def fits(self, m: Match) -> bool:
        if any(m.has(op) for op in self.written):
            return True
        op = self._found(m)
        return (m.attr(op, "factor") if op.type == "pow" else self._operand(m, op)) == self.exponent


def _close(value: float | None, wanted: float) -> bool:
    """Whether a constant is the wanted one, as somebody wrote it in float32."""
    return value is not None and math.isclose(value, wanted, rel_tol=1e-6)


# Activations ----------------------------------------------------------------------------------------------------------
class _Halved:
    """x / 2 (1 + inner), in any order."""

    def __init__(self, p: PatternBuilder, x: str, inner: Any) -> None:
        self.one = _Shift(p, inner, "one")
        more = p.either(*self.one.patterns)
        self.halves = [_Factor(p, a, f"half{i}") for i, a in enumerate((x, more))]
        of_x, of_sum = (p.either(*half.patterns) for half in self.halves)
        whole = p.op("elementwise_mul", X=x, Y=more, commutative=True)
        self.halves.append(_Factor(p, whole, "half2"))
        self.roots = [
            p.op("elementwise_mul", X=of_x, Y=more, commutative=True),
            p.op("elementwise_mul", X=x, Y=of_sum, commutative=True),
            *self.halves[2].patterns,
        ]

    def fits(self, m: Match) -> bool:
        half = next(h for h in self.halves if any(m.has(op) for op in h.patterns))
        return _close(self.one.value(m), 1.0) and _close(half.value(m), 0.5)


@fusion("gelu_of_erf")
def gelu_of_erf(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """x / 2 (1 + erf(x / sqrt(2)))  ->  gelu(x)"""
    root_of_two = _Factor(p, "x", "root")
    halved = _Halved(p, "x", p.op("erf", X=p.either(*root_of_two.patterns)))

    def build(m: Match) -> NewVar | None:
        fits = halved.fits(m) and _close(root_of_two.value(m), math.sqrt(0.5))
        return m.op("gelu", X=m["x"], attrs={"approximate": False}) if fits else None

    return p.either(*halved.roots), build


@fusion("gelu_of_tanh")
def gelu_of_tanh(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))  ->  gelu(x, approximate=True)"""
    cube = _Power(p, "x", "three", 3)
    small = _Factor(p, p.either(*cube.patterns), "small")
    polynomial = p.op("elementwise_add", X="x", Y=p.either(*small.patterns), commutative=True)
    scaled = _Factor(p, polynomial, "scaled")
    halved = _Halved(p, "x", p.op("tanh", X=p.either(*scaled.patterns)))

    def build(m: Match) -> NewVar | None:
        fits = halved.fits(m) and cube.fits(m) and _close(small.value(m), 0.044715)
        fits = fits and _close(scaled.value(m), math.sqrt(2 / math.pi))
        return m.op("gelu", X=m["x"], attrs={"approximate": True}) if fits else None

    return p.either(*halved.roots), build


@fusion("swish_of_sigmoid")
def swish_of_sigmoid(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """x sigmoid(b x)  ->  swish(x)"""
    inner = _Factor(p, "x", "beta")
    gates = [p.op("sigmoid", X=p.either(*inner.patterns)), p.op("sigmoid", X="x")]

    def build(m: Match) -> NewVar | None:
        beta = 1.0 if m.has(gates[1]) else inner.value(m)
        return None if beta is None else m.op("swish", X=m["x"], attrs={"beta": beta})

    return p.op("elementwise_mul", X="x", Y=p.either(*gates), commutative=True), build


@fusion("hard_swish_of_clip")
def hard_swish_of_clip(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """x clip(x + 3, 0, 6) / 6  ->  hard_swish(x)"""
    shift = _Shift(p, "x", "three")
    shifted = p.either(*shift.patterns)
    gates = [p.op("relu6", X=shifted), p.op("clip", X=shifted, attrs={"min": 0.0})]
    sixth = _Factor(p, p.op("elementwise_mul", X="x", Y=p.either(*gates), commutative=True), "sixth")

    def build(m: Match) -> NewVar | None:
        limit = m.attr(gates[0], "threshold") if m.has(gates[0]) else m.attr(gates[1], "max")
        offset, factor = shift.value(m), sixth.value(m)
        if offset is None or not factor or limit is None:
            return None
        return m.op("hard_swish", X=m["x"], attrs={"threshold": limit, "scale": 1 / factor, "offset": offset})

    return p.either(*sixth.patterns), build


# layer_norm -----------------------------------------------------------------------------------------------------------
def _over_last_dims(op: OpNode) -> bool:
    """Whether a mean is taken over some of the last dims, which stay with size 1."""
    return op.attr("keep_dim", False) and not op.attr("reduce_all", False) and _first_dim(op) is not None


def _first_dim(op: OpNode) -> int | None:
    """The first of the last dims that are reduced; None when others are."""
    x, dims = op.input("X"), op.attr("dim", (0,))
    if x is None or x.shape is None or not dims:
        return None
    rank = len(x.shape)
    reduced = sorted(d % rank for d in dims)
    return reduced[0] if 0 < reduced[0] and reduced == list(range(reduced[0], rank)) else None


@fusion("layer_norm_of_means")
def layer_norm_of_means(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """(x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon)  ->  layer_norm(x)"""
    means = [p.op("reduce_mean", X="x", where=_over_last_dims) for _ in range(2)]
    above, below = (p.op("elementwise_sub", X="x", Y=mean, attrs={"axis": -1}) for mean in means)
    square = _Power(p, below, "two", 2)
    variance = p.op("reduce_mean", X=p.either(*square.patterns), where=_over_last_dims)
    epsilon = _Shift(p, variance, "epsilon")
    shifted = p.either(*epsilon.patterns)
    roots = [
        p.op("elementwise_div", X=above, Y=p.op("sqrt", X=shifted), attrs={"axis": -1}),
        p.op("elementwise_mul", X=above, Y=p.op("rsqrt", X=shifted), commutative=True, attrs={"axis": -1}),
    ]

    def build(m: Match) -> NewVar | None:
        first = {_first_dim(m.op_of(op)) for op in (*means, variance)}
        small = epsilon.value(m)
        if len(first) > 1 or not square.fits(m) or small is None or not 0 <= small <= 0.001:
            return None
        return m.op("layer_norm", X=m["x"], attrs={"epsilon": small, "begin_norm_axis": first.pop()}, out="Y")

    return p.either(*roots), build


def _parameter_of(slot: str, op_type: str, *others: str) -> Fusion:
    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        slots: dict[str, Any] = {name: p.param(name, optional=True) for name in others}
        norm = p.op("layer_norm", X="x", **slots)
        root = p.op(op_type, X=norm, Y=p.param("new"), commutative=True)

        def build(m: Match) -> NewVar | None:
            op, new, dims = m.op_of(norm), m.value("new"), m["x"].shape
            start = m.attr(op, "begin_norm_axis")
            if dims is None or not 0 < start < len(dims):
                return None
            last, axis = dims[start:], m.attr(m.root, "axis")
            if min(last) < 1 or new.dtype.name != m["x"].dtype:
                return None
            place = len(dims) - new.ndim if axis == -1 else axis
            if place + new.ndim != len(dims) or tuple(new.shape[max(start - place, 0) :]) != tuple(last):
                return None
            if new.size != math.prod(last):
                return None
            found: dict[str, VarNode | NewParam] = {name: m[name] for name in others if m.has(name)}
            found[slot] = m.new_param(new.reshape(-1), like="new")
            return m.op("layer_norm", X=m["x"], attrs=m.attrs(norm), out="Y", **found)

        return root, build

    row.__doc__ = f"{op_type} of a parameter after layer_norm -> its {slot}"
    return fusion(f"layer_norm_takes_{slot.lower()}")(row)


fuse_layer_norm = layer_norm_of_means + _parameter_of("Scale", "elementwise_mul")
fuse_layer_norm += _parameter_of("Bias", "elementwise_add", "Scale")
fuse_activations = gelu_of_erf + gelu_of_tanh + swish_of_sigmoid + hard_swish_of_clip
