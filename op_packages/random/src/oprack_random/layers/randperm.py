"""The layer of randperm."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_dtype
from oprack.types import FLOATS, dtype_enum


def randperm(n, dtype="int64", seed=0, name=None):
    """[n]: 0 to n - 1 in random order. Op randperm."""
    number = int(dtype_enum(check_dtype(dtype, "dtype", "randperm", {"int32", "int64"} | FLOATS)))
    attrs = {"n": n, "dtype": number, "seed": seed}
    return LayerHelper("randperm", name=name).apply("randperm", {}, attrs, stop_gradient=True)
