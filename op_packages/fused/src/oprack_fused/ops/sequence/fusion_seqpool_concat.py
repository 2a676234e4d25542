"""fusion_seqpool_concat: all of the op but its kernels."""

from __future__ import annotations

from oprack_fused.ops.sequence._pool import AXIS, PooledConcat


class FusionSeqpoolConcat(PooledConcat, type="fusion_seqpool_concat"):
    r"""$$Out_s = [\operatorname{pool}_s X^0, \operatorname{pool}_s X^1, \dots]$$ sequence_pool and concat."""

    axis = AXIS
