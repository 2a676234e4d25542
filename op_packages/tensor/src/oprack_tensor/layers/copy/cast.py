"""Layer of cast."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_dtype, check_variable
from oprack.types import ALL_DTYPES, dtype_enum


def cast(x: Variable, dtype: object, name: str | None = None) -> Variable:
    """x as another dtype. Op cast. Raises InvalidArgumentError."""
    check_variable(x, "x", "cast")
    out_dtype = dtype_enum(check_dtype(dtype, "dtype", "cast", ALL_DTYPES))
    attrs = {"in_dtype": int(dtype_enum(x.dtype)), "out_dtype": int(out_dtype)}
    return LayerHelper("cast", name=name).apply("cast", {"X": x}, attrs)
