"""fusion_seqpool_cvm_concat: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, dtype_of

from oprack_fused.ops.sequence._pool import AXIS, PooledConcat


class FusionSeqpoolCvmConcat(PooledConcat, type="fusion_seqpool_cvm_concat"):
    r"""$$Out_s = [v(\operatorname{pool}_s X^0), v(\operatorname{pool}_s X^1), \dots]$$

    $v$ takes the first two columns, shows and clicks, to $\ln(x_0 + 1)$ and $\ln(x_1 + 1) - \ln(x_0 + 1)$.
    """

    CVM = Input("[number of sequences, 2]; not read.")
    use_cvm = Attr(True, "Always true.").in_set({True})
    axis = AXIS
    expected_kernel_type = dtype_of("X")
