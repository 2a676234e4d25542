"""Values of any kind in tests: their elements, the same over other elements, copies, and what differs."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.tensor import LoDTensor, LoDTensorArray, SparseTensor, SparseValue
from oprack.tensor.kinds import KINDS


def as_value(value: Any) -> Any:
    """An array as a LoDTensor; a value of a variable, or None, as it is."""
    return value if value is None or type(value) in KINDS else LoDTensor(np.asarray(value))


def map_values(value: Any, function: Any) -> Any:
    """A function of a value, or of each of a list."""
    if isinstance(value, list) and not isinstance(value, LoDTensorArray):
        return [function(as_value(v)) for v in value]
    return function(as_value(value))


def elements(value: Any) -> np.ndarray:
    """The array of a tensor, or the listed elements of a sparse value."""
    found: np.ndarray = value.elements if isinstance(value, SparseValue) else value.array
    return found


def with_elements(value: Any, array: np.ndarray) -> Any:
    """A value of the same kind, LoD and pattern over other elements."""
    return value.rebuilt(value.pattern, array) if isinstance(value, SparseValue) else LoDTensor(array, value.lod)


def to_float64(value: Any) -> Any:
    """Floating elements in double precision."""
    if isinstance(value, LoDTensor | SparseValue):
        wide = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
        if value.dtype in wide:
            return with_elements(value, elements(value).astype(wide[value.dtype]))
    return value


def copied(value: Any) -> Any:
    """A copy, since ops may overwrite a value in place."""
    if isinstance(value, LoDTensor):
        return LoDTensor(value.array.copy(), value.lod, check=False)
    if isinstance(value, SparseValue):
        return value.rebuilt([a.copy() for a in value.pattern], value.elements.copy())
    return LoDTensorArray(copied(t) for t in value)


def difference(want: Any, got: Any, rtol: float, atol: float) -> str:
    """What differs, in words; "" where nothing does. SelectedRows agree when their dense matrices do."""
    if isinstance(want, SparseTensor):
        return _other_pattern(want, got) or difference(LoDTensor(want.values), LoDTensor(got.values), rtol, atol)
    if isinstance(want, SparseValue):
        want, got = LoDTensor(want.to_dense()), LoDTensor(got.to_dense())
    if isinstance(want, LoDTensorArray):
        pairs = zip(want, got, strict=True)
        return next((r for w, g in pairs if (r := difference(w, g, rtol, atol))), "")
    if got.lod != want.lod:
        return f"has LoD {got.lod}, expected {want.lod}"
    if got.array.dtype != want.array.dtype or got.shape != want.shape:
        return f"is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if want.array.dtype.kind in "fc":
        if np.allclose(got.array, want.array, rtol=rtol, atol=atol, equal_nan=True):
            return ""
        return f"differs by up to {np.nanmax(np.abs(got.array - want.array)):.3g}"
    return "" if np.array_equal(got.array, want.array) else "differs"


def _other_pattern(want: SparseTensor, got: Any) -> str:
    if type(got) is not type(want) or got.shape != want.shape:
        return f"is {got!r}, expected {want!r}"
    for w, g in zip(want.pattern, got.pattern, strict=True):
        if not np.array_equal(w, g):
            return f"lists {g.tolist()}, expected {w.tolist()}"
    return ""
