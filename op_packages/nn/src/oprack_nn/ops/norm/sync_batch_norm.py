"""sync_batch_norm and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, GradOpDef, dtype_of
from oprack.op.sbp import SbpContext, Signature

from oprack_nn.ops.norm.batch_norm import BatchNorm, batch_norm_dims, batch_norm_gradient


class SyncBatchNorm(BatchNorm, type="sync_batch_norm"):
    r"""$$Y = Scale \frac{X - \mu}{\sqrt{\sigma^2 + epsilon}} + Bias$$ per channel, over the rows of all ranks

    mu and sigma^2 are those of the rows of all ranks; each rank has rows of its own and gets theirs. All else is as in
    batch_norm.
    """

    ring_id = Attr(0, "The ring of the ranks that have rows; 0 is all ranks.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return []  # its ranks are those of the ring

    def make_grad(fwd: ForwardOp) -> GradOp:
        return batch_norm_gradient("sync_batch_norm_grad", fwd)


class SyncBatchNormGrad(
    GradOpDef,
    of=SyncBatchNorm,
    reads="X Scale Bias Mean? Variance? MeanOut? VarianceOut? SavedMean SavedVariance ReserveSpace Y@GRAD",
    shape_of="Bias MeanOut VarianceOut ReserveSpace",
    grads_of="X? Scale? Bias?",
):
    r"""Bias@GRAD and Scale@GRAD are this rank's summands, $$\sum Y@GRAD$$ and $$\sum \hat{x} Y@GRAD$$; in X@GRAD

    $$\frac{Scale}{\sigma} (Y@GRAD - mean(Y@GRAD) - \hat{x} \cdot mean(\hat{x} Y@GRAD))$$ the means are over all ranks.
    """

    expected_kernel_type = dtype_of("X")
    infer_shape = batch_norm_dims("X")
