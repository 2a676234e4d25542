"""bilinear_tensor_product and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like
from oprack.op.sbp import leading


class BilinearTensorProduct(OpDef, type="bilinear_tensor_product"):
    r"""$$Out_{b,k} = X_b\,Weight_k\,Y_b^T + Bias_k$$"""

    X = Input("[B, M].")
    Y = Input("[B, N].")
    Weight = Input("[K, M, N].")
    Bias = Input("[1, K].", dispensable=True)
    Out = Output("[B, K], LoD of X.")
    sbp = leading(("X", "Y"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y, (k, m, n) = ctx.require_rank("X", 2), ctx.require_rank("Y", 2), ctx.require_rank("Weight", 3)
        ctx.require_dims("X", (y[0], m), why=f"the rows of Y {list(y)} and the second dim of Weight {[k, m, n]}")
        ctx.require_dims("Y", (x[0], n), why=f"the rows of X {list(x)} and the last dim of Weight {[k, m, n]}")
        ctx.require_dims("Bias", (1, k), why=f"the first dim of Weight {[k, m, n]}")
        ctx.set_dim("Out", (x[0], k))
        ctx.share_lod("X", "Out")


class BilinearTensorProductGrad(GradOpDef, of=BilinearTensorProduct, reads="X Y Weight", grads_of="X Y Weight Bias"):
    r"""$$X@GRAD_b = \sum_k g_{b,k} Weight_k Y_b,\quad Y@GRAD_b = \sum_k g_{b,k} Weight_k^T X_b$$

    $$Weight@GRAD_k = \sum_b g_{b,k} X_b^T Y_b,\quad Bias@GRAD_k = \sum_b g_{b,k}$$ with $g$ = Out@GRAD.
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y"), ("Weight@GRAD", "Weight")])
        ctx.set_dim("Bias@GRAD", (1, ctx.dim("Weight")[0]))
