"""Comparison within tolerances."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule

from oprack_math.ops.compare._close import tolerance


def close(
    op_type: str,
    x: Array,
    y: Array,
    tensors: tuple[Array, Array],
    texts: tuple[str, str],
    equal_nan: bool,
    xp: ArrayModule,
) -> Array:
    """Whether x = y, or |x - y| <= atol + rtol |y| of a finite y; tensors, texts: (rtol, atol), and a tensor wins."""
    rtol, atol = (
        float(t.reshape(-1)[0]) if t is not None else tolerance(op_type, name, text)
        for name, t, text in zip(("rtol", "atol"), tensors, texts, strict=True)
    )
    near = (x == y) | ((xp.abs(x - y) <= atol + rtol * xp.abs(y)) & xp.isfinite(y))
    return near | ((x != x) & (y != y)) if equal_nan else near
