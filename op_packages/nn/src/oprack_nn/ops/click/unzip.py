"""unzip and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class Unzip(OpDef, type="unzip"):
    r"""$$Y_i = X_{n_i}, \; n_i = |\{j < i : lod_{j+1} > lod_j\}|$$ where $lod_{i+1} > lod_i$, else 0

    The rows of X one after the other, with rows of zeros for the instances that have none. Paddle computes it on GPUs
    alone, and no gradient.
    """

    X = Input("Rows of the instances that have one [M, N].")
    lod = Input("Offsets of the instances, int32 or int64 [K + 1]: an instance has a row where they rise.")
    Y = Output("A row for each instance [K, N].")
    len = Attr(1, "Paddle: has no effect.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        _, width = ctx.require_rank("X", 2)
        (offsets,) = ctx.require_rank("lod", 1)
        ctx.set_dim("Y", (offsets - 1 if offsets > 0 else -1, width))


class UnzipGrad(GradOpDef, of=Unzip, reads="X lod Y@GRAD", shape_of="X", grads_of="X"):
    """The rows of Y@GRAD of the instances that have one; zeros for rows of X that no instance took."""

    expected_kernel_type = dtype_of("Y@GRAD")
