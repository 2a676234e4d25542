"""The layer of randperm."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_dtype
from oprack.types import FLOATS, dtype_enum


def randperm(n: int, dtype: object = "int64", seed: int = 0, name: str | None = None) -> Variable:
    """[n]: 0 to n - 1 in random order. Op randperm."""
    number = int(dtype_enum(check_dtype(dtype, "dtype", "randperm", {"int32", "int64"} | FLOATS)))
    attrs = {"n": n, "dtype": number, "seed": seed}
    return LayerHelper("randperm", name=name).apply("randperm", {}, attrs, stop_gradient=True)
