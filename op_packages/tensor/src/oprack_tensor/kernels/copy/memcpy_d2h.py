"""Kernels of memcpy_d2h, one for each kind of variable."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.copy._copies import copy_of, copy_of_rows

memcpy_d2h = kernel("memcpy_d2h", place=("cpu", "cuda"))(copy_of)
memcpy_d2h_rows = kernel("memcpy_d2h", place=("cpu", "cuda"))(copy_of_rows)
