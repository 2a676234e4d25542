"""Kernels of cast, one for each kind of variable."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.copy._convert import convert, convert_rows

cast = kernel("cast", place=("cpu", "cuda"))(convert)
cast_rows = kernel("cast", place=("cpu", "cuda"))(convert_rows)
