"""Kernel of fused_elementwise_add."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_fused.kernels._steps import BOTH, DTYPES
from oprack_fused.kernels.onednn._elementwise import fused_elementwise

fused_elementwise_add = kernel("fused_elementwise_add", place=BOTH, dtypes=DTYPES)(fused_elementwise)
