"""Transposes and reshapes after each other become one, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.ir import Match, NewVar, PatternBuilder, VarNode, fusion

TRANSPOSES = ("transpose", "transpose2")
RESHAPES = ("reshape", "reshape2")
# Ops that keep the elements in their order and take nothing but X.
FLAT = (*RESHAPES, "flatten2", "flatten_contiguous_range", "squeeze", "squeeze2", "unsqueeze", "unsqueeze2")


def _plain(node: VarNode) -> bool:
    """Whether a variable has no LoD, which some of these ops hand on and others drop."""
    return node.desc is not None and node.desc.lod_level == 0


@fusion("merge_transposes")
def merge_transposes(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """transpose(transpose(x, a), b)  ->  transpose(x, a[b]), or x"""
    first = p.op(TRANSPOSES, X="x")
    root = p.op(TRANSPOSES, X=first)

    def build(m: Match) -> NewVar | VarNode | None:
        a, b = m.attr(first, "axis"), m.attr(root, "axis")
        if not _plain(m["x"]) or sorted(a) != list(range(len(a))) or sorted(b) != sorted(a):
            return None
        axis = [a[i] for i in b]
        return m["x"] if axis == sorted(axis) else m.op("transpose2", X=m["x"], attrs={"axis": axis}, out="Out")

    return root, build


@fusion("merge_reshapes")
def merge_reshapes(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """reshape(f(x), shape)  ->  reshape(x, shape), where f keeps the elements in order and shape copies no dim"""
    first = p.op(FLAT, X="x")
    root = p.op(RESHAPES, X=first, where=lambda op: op.attr("shape") and 0 not in op.attr("shape"))

    def build(m: Match) -> NewVar | VarNode | None:
        if not _plain(m["x"]):
            return None
        return m.op("reshape2", X=m["x"], attrs={"shape": m.attr(root, "shape")}, out="Out")

    return root, build


def _axes(m: Match, op: Any) -> list[int] | None:
    """Axes of (un)squeeze in order; None unless they count from the front."""
    axes = sorted(m.attr(op, "axes") or [-1])
    return axes if axes[0] >= 0 and len(set(axes)) == len(axes) else None


@fusion("cancel_squeezes")
def cancel_squeezes(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """squeeze(unsqueeze(x, axes), axes)  ->  x"""
    first = p.op(("unsqueeze", "unsqueeze2"), X="x")
    root = p.op(("squeeze", "squeeze2"), X=first)

    def build(m: Match) -> VarNode | None:
        axes = _axes(m, root)
        return m["x"] if _plain(m["x"]) and axes is not None and axes == _axes(m, first) else None

    return root, build


merge_shape_ops = merge_transposes + merge_reshapes + cancel_squeezes
