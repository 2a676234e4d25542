"""Kernels of memcpy_h2d, one for each kind of variable."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.copy._copies import copy_of, copy_of_rows

memcpy_h2d = kernel("memcpy_h2d", place=("cpu", "cuda"))(copy_of)
memcpy_h2d_rows = kernel("memcpy_h2d", place=("cpu", "cuda"))(copy_of_rows)
