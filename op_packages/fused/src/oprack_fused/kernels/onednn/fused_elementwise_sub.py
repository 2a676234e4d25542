"""Kernel of fused_elementwise_sub."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_fused.kernels._steps import BOTH, DTYPES
from oprack_fused.kernels.onednn._elementwise import fused_elementwise

fused_elementwise_sub = kernel("fused_elementwise_sub", place=BOTH, dtypes=DTYPES)(fused_elementwise)
