"""Values of generated inputs: recorded ones repeated to another shape, fresh ones, and what stands out among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.tensor import numpy_dtype

SIZES = (2, 1, 3, 0, 5, 4, 7, 8, 13, 16, 17, 33)
"""Sizes of dims, the plainest first: shrinking goes to the front."""

FILLS = ("repeated", "uniform", "small", "positive", "large", "zeros", "ones")
ODD = ("nan", "specials", "inf", "-inf", "huge", "specials", "tiny", "denormal", "negative zero", "negative")
DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "int8", "int16", "float16", "bfloat16", "complex64")


def fresh(rng: np.random.Generator, shape: Sequence[int], dtype: Any, fill: str = "uniform") -> np.ndarray:
    """An array of a kind of FILLS; of integers, small ones that may stand for an index."""
    dt = numpy_dtype(dtype)
    if dt.kind == "b":
        return rng.random(shape) < 0.5
    if dt.kind in "iu":
        first, end = {"large": (-100, 100), "zeros": (0, 1), "ones": (1, 2)}.get(fill, (0, 4))
        # Small ones, since most integers are indices or sizes.
        return rng.integers(max(first, 0) if dt.kind == "u" else first, end, shape).astype(dt)
    if fill in ("zeros", "ones"):
        return np.full(shape, float(fill == "ones")).astype(dt)
    low, high = {"positive": (0.1, 2.0), "large": (-30.0, 30.0), "small": (-1e-3, 1e-3)}.get(fill, (-1.0, 1.0))
    values: Any = rng.uniform(low, high, shape)
    if dt.kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values).astype(dt)


def refilled(rng: np.random.Generator, old: np.ndarray, shape: Sequence[int], dtype: Any, fill: str) -> np.ndarray:
    """Values for a new shape and dtype; "repeated" keeps those that were recorded, which an op is known to accept."""
    if fill != "repeated" or not old.size:
        return fresh(rng, shape, dtype, "uniform" if fill == "repeated" else fill)
    dt = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        return np.resize(old if dt.kind == "c" else old.real, tuple(shape)).astype(dt)


def with_odd(rng: np.random.Generator, array: np.ndarray, odd: str, share: float) -> np.ndarray:
    """A copy with some of its elements replaced: about `share` of them, at least one."""
    found = array.copy()
    if not found.size:
        return found
    at = rng.random(found.shape) < share
    # At least one, also where the share rounds to none.
    at.reshape(-1)[int(rng.integers(found.size))] = True
    with np.errstate(all="ignore"):
        if found.dtype.kind in "fc" or found.dtype.name == "bfloat16":
            found[at] = _floats(rng, found, odd)[at]
        elif found.dtype.kind in "iu":
            info = np.iinfo(found.dtype)
            choices = {"huge": info.max, "-inf": info.min, "inf": info.max, "tiny": 0}
            found[at] = choices.get(odd, -1 if info.min else 255)
    return found


def _floats(rng: np.random.Generator, like: np.ndarray, odd: str) -> np.ndarray:
    import ml_dtypes

    info: Any = ml_dtypes.finfo(like.dtype)  # type: ignore[no-untyped-call]
    table = {
        "nan": np.nan,
        "inf": np.inf,
        "-inf": -np.inf,
        "huge": float(info.max),
        "tiny": float(info.tiny),
        "denormal": float(info.smallest_subnormal),
        "negative zero": -0.0,
        "negative": -2.0,
    }
    if odd == "specials":
        return rng.choice([*table.values(), 0.0, 1.0], like.shape).astype(like.dtype)
    return np.full(like.shape, table[odd]).astype(like.dtype)


def lod_of(rng: np.random.Generator, rows: int, sequences: int, empty: Sequence[str]) -> list[int]:
    """Offsets of sequences over `rows` rows. empty: where an empty sequence stands: "first", "middle", "last"."""
    cuts = sorted(int(c) for c in rng.integers(0, rows + 1, max(sequences - 1, 0)))
    offsets = [0, *cuts, rows]
    for where in empty:
        at = {"first": 0, "last": len(offsets) - 1}.get(where, len(offsets) // 2)
        offsets.insert(at, offsets[at])
    return offsets
