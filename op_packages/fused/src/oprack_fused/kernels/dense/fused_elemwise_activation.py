"""Kernels of fused_elemwise_activation and of its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_fused.kernels._steps import BOTH, DTYPES
from oprack_fused.kernels.dense._elemwise import pair, pair_grad

kernel("fused_elemwise_activation", place=BOTH, dtypes=DTYPES)(pair)
kernel("fused_elemwise_activation_grad", place=BOTH, dtypes=DTYPES)(pair_grad)
