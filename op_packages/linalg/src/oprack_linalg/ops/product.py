"""Definitions of products and powers of matrices."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_linalg.ops._shapes import square_dims


# bilinear_tensor_product and its gradient.
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


# matrix_power and its gradient.
class MatrixPower(OpDef, type="matrix_power"):
    r"""$$Out = X^n$$"""

    X = Input("[..., N, N]; not singular where n is negative.")
    Out = Output("Shape of X; no LoD.")
    n = Attr(REQUIRED, "The exponent, which may be negative or zero.", type=AttrType.INT)
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "X"))


class MatrixPowerGrad(GradOpDef, of=MatrixPower, reads="X Out"):
    r"""$$X@GRAD = \sum_{i=0}^{n-1} (X^T)^i\,Out@GRAD\,(X^T)^{n-1-i}$$

    For negative n it is $-Y^T\,Y@GRAD\,Y^T$, where $Y = X^{-1}$ and $Out = Y^{-n}$.
    """


# spectral_norm and its gradient.
class SpectralNorm(OpDef, type="spectral_norm"):
    r"""$$Out = Weight / \sigma,\quad \sigma = u^T W v$$

    $W$ is Weight with `dim` in front and its other dims made one. $u$ and $v$ start as U and V and are improved by
    `power_iters` rounds of $v = W^T u / (\|W^T u\| + \epsilon)$, $u = W v / (\|W v\| + \epsilon)$.
    """

    Weight = Input("Tensor of rank 2 to 5.")
    U = Input("[Weight's dim `dim`].")
    V = Input("[the product of Weight's other dims].")
    Out = Output("Shape of Weight; no LoD.")
    dim = Attr(0, "The dim of Weight that is the rows of $W$.")
    power_iters = Attr(1, "Rounds of the power iteration.").check(lambda v: v >= 0, "a number of rounds, 0 or more")
    eps = Attr(1e-12, "Keeps norms from being zero.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Weight", 2, 3, 4, 5)
        axis, columns = ctx.axis("Weight", "dim"), 1
        for i, d in enumerate(dims):
            if i != axis:
                columns = -1 if -1 in (columns, d) else columns * d
        ctx.require_dims("U", (dims[axis],), why=f"dim {axis} of Weight {list(dims)}")
        ctx.require_dims("V", (columns,), why=f"all dims of Weight {list(dims)} but dim {axis}")
        ctx.set_dim("Out", dims)


class SpectralNormGrad(GradOpDef, of=SpectralNorm, reads="Weight U V", grads_of="Weight"):
    r"""$$W@GRAD = (Out@GRAD - \langle Out@GRAD, Out \rangle\, u v^T) / \sigma$$ and what flows through $u$ and $v$.

    The second part vanishes as the power iteration converges.
    """
