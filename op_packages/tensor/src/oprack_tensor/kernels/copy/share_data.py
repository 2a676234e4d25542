"""Kernels of share_data, one for each kind of variable."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.copy._copies import copy_of, copy_of_rows

share_data = kernel("share_data", place=("cpu", "cuda"))(copy_of)
share_data_rows = kernel("share_data", place=("cpu", "cuda"))(copy_of_rows)
