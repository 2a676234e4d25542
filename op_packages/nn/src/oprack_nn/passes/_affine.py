"""Ops that are x -> a x + b per channel with a and b known: how patterns find them, and their a and b."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from oprack.ir import Match, OpNode, PatternBuilder
from oprack.kernel import Array

if TYPE_CHECKING:
    Numbers: TypeAlias = Array | np.float64
"""One number for each channel, or one for all of them."""

BATCH_NORM_STATS = ("MeanOut", "VarianceOut")


def uses_running_stats(op: OpNode) -> bool:
    """Whether a batch_norm takes Mean and Variance as they are, and gives them back."""
    return (op.attr("is_test", False) or op.attr("use_global_stats", False)) and not op.attr(
        "trainable_statistics", False
    )


def affine_ops(p: PatternBuilder, x: Any, shifted: Any = None) -> tuple[Any, ...]:
    """Patterns of all affine ops over the pattern x; their parameters are "s", "c", "mean" and "variance".

    shifted: What ops with an a of 1 are looked for over; None for x.
    """
    shifted = shifted or x
    return (
        p.op(
            "batch_norm",
            X=x,
            Scale=p.param("s", optional=True),
            Bias=p.param("c", optional=True),
            Mean=p.param("mean"),
            Variance=p.param("variance"),
            where=uses_running_stats,
            unchanged=BATCH_NORM_STATS,
        ),
        p.op("affine_channel", X=x, Scale=p.param("s"), Bias=p.param("c")),
        p.op("elementwise_add", X=shifted, Y=p.param("c"), commutative=True),
        p.op("elementwise_mul", X=x, Y=p.param("c"), commutative=True),
        p.op("elementwise_sub", X=shifted, Y=p.param("c")),
        p.op("elementwise_div", X=x, Y=p.param("c")),
        p.op("scale", X=x),
    )


def affine_of(m: Match, op: OpNode, rank: int, channel: int) -> tuple[Numbers, Numbers] | None:
    """(a, b) of an affine op: float64 arrays of shape [] or [C], C at dim `channel` of x.

    None when it is unlike, or its parameters are not finite: moved elsewhere, these would make other infinities.
    """
    found = _affine_of(m, op, rank, channel)
    return found if found is not None and all(np.isfinite(v).all() for v in found) else None


def representable(value: Numbers, model: Array) -> bool:
    """Whether a float64 array stays finite in the dtype of another array."""
    if not value.size:
        return True
    largest = np.finfo(model.dtype).max
    return bool(value.max() <= largest and value.min() >= -largest)  # False for NaN


def _affine_of(m: Match, op: OpNode, rank: int, channel: int) -> tuple[Numbers, Numbers] | None:
    if op.type == "scale":
        a, b = np.float64(m.attr(op, "scale")), np.float64(m.attr(op, "bias"))
        return a, b if m.attr(op, "bias_after_scale") else a * b
    if op.type in ("batch_norm", "affine_channel"):
        if not _same_channel(m.attr(op, "data_layout"), rank, channel):
            return None
        if op.type == "affine_channel":
            return m.value("s").astype(np.float64).reshape(-1), m.value("c").astype(np.float64).reshape(-1)
        s, c = (None if v is None else v.astype(np.float64) for v in (m.value("s"), m.value("c")))
        mean, variance = m.value("mean").astype(np.float64), m.value("variance").astype(np.float64)
        a = (1.0 if s is None else s) / np.sqrt(variance + m.attr(op, "epsilon"))
        return a, (0.0 if c is None else c) - mean * a
    c = per_channel(m.value("c"), m.attr(op, "axis"), rank, channel)
    if c is None:
        return None
    one, zero = np.float64(1), np.float64(0)
    if op.type == "elementwise_div":
        return (1 / c, zero) if np.all(c != 0) else None
    return {"elementwise_add": (one, c), "elementwise_sub": (one, -c), "elementwise_mul": (c, zero)}[op.type]


def _same_channel(layout: str, rank: int, channel: int) -> bool:
    return channel % rank == (rank - 1 if layout in ("NHWC", "NDHWC") else 1)


def per_channel(value: Array, axis: int, rank: int, channel: int) -> Array | None:
    """A broadcast operand as float64 [] or [C]; None when it varies along another dim than `channel`, or is larger."""
    value = np.asarray(value)
    if value.dtype.kind != "f" or value.ndim > rank:
        return None
    start = rank - value.ndim if axis == -1 or value.ndim == rank else axis
    if not 0 <= start <= rank:
        return None
    shape = list(value.shape)
    while shape and start + len(shape) > rank and shape[-1] == 1:
        shape.pop()
    dims = [1] * start + shape + [1] * (rank - start - len(shape))
    if len(dims) != rank or any(d != 1 for i, d in enumerate(dims) if i != channel % rank):
        return None
    flat = value.astype(np.float64).reshape(-1)
    return flat if flat.size > 1 else flat.reshape(())
