"""Kernels of transfer_dtype, one for each kind of variable."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.copy._convert import convert, convert_rows

transfer_dtype = kernel("transfer_dtype", place=("cpu", "cuda"))(convert)
transfer_dtype_rows = kernel("transfer_dtype", place=("cpu", "cuda"))(convert_rows)
