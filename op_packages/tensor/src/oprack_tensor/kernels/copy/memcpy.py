"""Kernels of memcpy, one for each kind of variable."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.copy._copies import copy_of, copy_of_rows

memcpy = kernel("memcpy", place=("cpu", "cuda"))(copy_of)
memcpy_rows = kernel("memcpy", place=("cpu", "cuda"))(copy_of_rows)
