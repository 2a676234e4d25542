"""Cases of rotary_embedding: pairs as complex numbers, multiplied by one of magnitude 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.tensor import LoDTensor
from oprack.testing import OpCase

rng = np.random.default_rng(5)


def case(name: str, shape: tuple[int, ...], dtype: str = "float64", lod: Any = None, **attrs: Any) -> OpCase:
    x, positions = rng.standard_normal(shape).astype(dtype), rng.integers(0, 50, shape[:-2])
    d = attrs.get("turned") or shape[-1]
    out, neighbours = x.copy(), attrs.get("interleaved", False)
    pairs = [(2 * k, 2 * k + 1) if neighbours else (k, k + d // 2) for k in range(d // 2)]
    for k, (i, j) in enumerate(pairs):
        angle = positions[..., None] * attrs.get("base", 10000.0) ** (-2 * k / d)
        turned = (x[..., i] + 1j * x[..., j]) * np.exp(-1j * angle if attrs.get("inverse") else 1j * angle)
        out[..., i], out[..., j] = turned.real, turned.imag
    grads = ["X"] if dtype == "float64" and x.size else []
    given, expected = (x, out) if lod is None else (LoDTensor(x, lod), LoDTensor(out, lod))
    inputs = {"X": given, "Positions": positions}
    return OpCase("rotary_embedding", inputs, attrs, {"Out": expected}, grads, name=name)


CASES = [
    case("rows", (5, 2, 4), lod=[[0, 0, 3, 5]]),
    case("batch", (2, 3, 2, 6)),
    case("neighbours", (4, 1, 4), interleaved=True),
    case("some of the elements", (4, 2, 6), turned=4),
    case("back", (4, 2, 4), inverse=True, base=100.0),
    case("float32", (4, 2, 4), dtype="float32"),
    case("no rows", (0, 2, 4)),
]
