"""sparse_sync_batch_norm and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.nn._norm import Norm, NormGrad


class SparseSyncBatchNorm(Norm, type="sparse_sync_batch_norm"):
    r"""$$out = scale \frac{x - \mu}{\sqrt{\sigma^2 + epsilon}} + bias$$ for each channel, over the listed points.

    Statistics are those of the points of all ranks.
    """

    inplace = {"mean": "mean_out", "variance": "variance_out"}


class SparseSyncBatchNormGrad(NormGrad, of=SparseSyncBatchNorm):
    r"""With xhat the normalised x: bias@GRAD = sum out@GRAD, scale@GRAD = sum xhat out@GRAD, and

    $$x@GRAD = \frac{scale}{\sigma} (out@GRAD - mean(out@GRAD) - xhat \cdot mean(xhat\, out@GRAD))$$, without the means
    where the forward op used the running statistics.
    """
