"""Cases of triangular_solve: Y is computed from the solution. 70 rows are where LAPACK's own routine takes over."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import NONE, draw, f32


def case(
    name: str, n: int, batch: tuple[int, ...] = (2,), grads: tuple[str, ...] = ("X", "Y"), **attrs: bool
) -> OpCase:
    upper, unit = attrs.get("upper", True), attrs.get("unitriangular", False)
    x = draw(*batch, n, n) / n + 2 * np.eye(n, dtype=f32)
    triangle = (np.triu if upper else np.tril)(x)
    if unit:
        triangle = triangle - np.eye(n, dtype=f32) * triangle + np.eye(n, dtype=f32)
    if attrs.get("transpose"):
        triangle = triangle.swapaxes(-1, -2)
    out = draw(3, 1, n, 2, seed=1)
    out = np.broadcast_to(out, np.broadcast_shapes(out.shape[:-2], batch) + out.shape[-2:]).copy()
    return OpCase(
        "triangular_solve", {"X": x, "Y": triangle @ out}, attrs, {"Out": out}, grads, name=name, rtol=1e-4, atol=1e-5
    )


CASES = [
    case("upper", 3),
    case("lower", 3, upper=False),
    case("upper_transposed", 3, transpose=True),
    case("lower_transposed", 3, upper=False, transpose=True),
    case("unit", 3, unitriangular=True),
    case("unit_lower_transposed", 3, upper=False, transpose=True, unitriangular=True),
    case("one_matrix_for_many", 3, batch=()),
    case("large_upper", 70),
    case("large_lower", 70, upper=False),
    case("large_upper_transposed", 70, transpose=True),
    case("large_lower_unit_transposed", 70, upper=False, transpose=True, unitriangular=True),
    OpCase("triangular_solve", {"X": NONE, "Y": NONE}, outputs={"Out": NONE}, name="no_matrix"),
]
