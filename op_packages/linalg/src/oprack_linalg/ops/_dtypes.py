"""The complex dtype for a real one, and the real one for a complex one."""

from __future__ import annotations

COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}
REAL_OF = {"complex64": "float32", "complex128": "float64"}


def complex_dtype(dtype: str) -> str:
    """complex64 of float32; a complex dtype stays."""
    return COMPLEX_OF.get(dtype, dtype)


def real_dtype(dtype: str) -> str:
    """float32 of complex64; a real dtype stays."""
    return REAL_OF.get(dtype, dtype)
