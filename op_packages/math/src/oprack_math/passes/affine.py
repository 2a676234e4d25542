"""Chains of element-wise ops with constants become shorter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from oprack.ir import Fusion, Match, NewVar, PatternBuilder, VarNode, fusion
from oprack.kernel import Array
from oprack.types import FLOATS, HALF_FLOATS, VarType

REAL = FLOATS | HALF_FLOATS
LARGEST = float(np.finfo(np.float32).max)


if TYPE_CHECKING:

    class RealTensor(VarNode):
        """A variable of which `is_real_tensor` holds."""

        @property
        def shape(self) -> tuple[int, ...]: ...

        @property
        def dtype(self) -> str: ...


def is_real_tensor(node: VarNode) -> TypeGuard[RealTensor]:
    """Whether a variable is a tensor of floats whose rank is known."""
    return (
        node.shape is not None and node.desc is not None and node.desc.type == VarType.LOD_TENSOR and node.dtype in REAL
    )


def as_attr(value: Array, dtype: str) -> float | None:
    """A one-element parameter of x's dtype as a FLOAT attribute; None when that would change it."""
    if value.size != 1 or value.dtype.name != dtype or value.dtype.kind != "f":
        return None
    number = value.item()
    return number if abs(number) <= LARGEST and float(np.float32(number)) == number else None


@fusion("scalar_to_scale")
def scalar_to_scale(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """x + c, x - c, x c with one element in c  ->  scale(x)"""
    ops = (
        p.op(("elementwise_add", "elementwise_mul"), X="x", Y=p.param("c"), commutative=True),
        p.op("elementwise_sub", X="x", Y=p.param("c")),
    )

    def build(m: Match) -> NewVar | None:
        x, value = m["x"], m.value("c")
        c = as_attr(value, x.dtype) if is_real_tensor(x) and value.ndim <= len(x.shape) else None
        if c is None:
            return None
        kinds = {"elementwise_add": (1.0, c), "elementwise_sub": (1.0, -c), "elementwise_mul": (c, 0.0)}
        factor, shift = kinds[m.root.type]
        return m.op("scale", X=x, attrs={"scale": factor, "bias": shift})

    return p.either(*ops), build


def _pair(p: PatternBuilder) -> tuple[Any, Any]:
    first = p.op("scale", X="x")
    return first, p.op("scale", X=first)


def _affine(m: Match, op: Any) -> tuple[float, float]:
    """(factor, shift after it) of a scale op."""
    factor, shift = m.attr(op, "scale"), m.attr(op, "bias")
    return factor, shift if m.attr(op, "bias_after_scale") else factor * shift


@fusion("join_scales")
def join_scales(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """A factor followed by a shift, or the other way round  ->  one scale, with the same rounding"""
    first, root = _pair(p)

    def build(m: Match) -> NewVar | None:
        (a, b), (c, d) = _affine(m, first), _affine(m, m.root)
        if b == 0 and c == 1:
            return m.op("scale", X=m["x"], attrs={"scale": a, "bias": d})
        if a == 1 and d == 0:
            return m.op("scale", X=m["x"], attrs={"scale": c, "bias": b, "bias_after_scale": False})
        return None

    return root, build


@fusion("merge_scales")
def merge_scales(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """c (a x + b) + d  ->  scale(x)"""
    first, root = _pair(p)

    def build(m: Match) -> NewVar | None:
        if not is_real_tensor(m["x"]):
            return None
        (a, b), (c, d) = _affine(m, first), _affine(m, m.root)
        factor, shift = a * c, b * c + d
        if not (abs(factor) <= LARGEST and abs(shift) <= LARGEST):
            return None
        return m.op("scale", X=m["x"], attrs={"scale": factor, "bias": shift})

    return root, build


def _constants_twice(name: str, op_type: str, combine: Callable[..., Any]) -> Fusion:
    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        inner = p.op(op_type, X="x", Y=p.param("c"), commutative=True)
        root = p.op(op_type, X=inner, Y=p.param("d"), commutative=True)

        def build(m: Match) -> NewVar | None:
            x, shapes = m["x"], []
            if not is_real_tensor(x):
                return None
            for op, constant in ((inner, "c"), (root, "d")):
                value = m.value(constant)
                start = len(x.shape) - value.ndim if m.attr(op, "axis") == -1 else m.attr(op, "axis")
                after = len(x.shape) - start - value.ndim
                if start < 0 or after < 0 or value.dtype.name != x.dtype:
                    return None
                shapes.append((1,) * start + value.shape + (1,) * after)
            sizes = zip(x.shape, *shapes, strict=True)
            if any(c not in (1, n) or d not in (1, n) or n < 0 < max(c, d) - 1 for n, c, d in sizes):
                return None  # a constant may be larger than x
            c, d = (m.value(n).astype(np.float64).reshape(s) for n, s in zip("cd", shapes, strict=True))
            return m.op(op_type, X=x, Y=m.new_param(combine(c, d), like="c"), attrs={"axis": -1})

        return root, build

    row.__doc__ = f"{op_type} of two constants after each other -> of one"
    return fusion(name)(row)


merge_additions = _constants_twice("merge_additions", "elementwise_add", np.add)
merge_products = _constants_twice("merge_products", "elementwise_mul", np.multiply)


@fusion("join_gate")
def join_gate(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """x + x g  ->  x (g + 1), where g is smaller than x"""
    gated = p.op("elementwise_mul", X="x", Y="g", commutative=True)
    root = p.op("elementwise_add", X="x", Y=gated, commutative=True, attrs={"axis": -1})

    def build(m: Match) -> NewVar | None:
        x, g = m["x"], m["g"]
        if not (is_real_tensor(x) and is_real_tensor(g)) or m.attr(gated, "axis") != -1 or x.dtype != g.dtype:
            return None
        if len(x.shape) != len(g.shape) or not any(b == 1 != a for a, b in zip(x.shape, g.shape, strict=True)):
            return None
        if any(b not in (1, a) for a, b in zip(x.shape, g.shape, strict=True)):
            return None
        return m.op("elementwise_mul", X=x, Y=m.op("scale", X=g, attrs={"bias": 1.0}), attrs={"axis": -1})

    return root, build


scalars_to_scales = scalar_to_scale + join_scales
merge_affine = merge_scales + merge_additions + merge_products + join_gate
