"""fft_c2r and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import all_but
from oprack.types import AttrType, complex_dtype, real_dtype

from oprack_fft.ops._transform import AXES, FORWARD, NORMALIZATION, points


class FftC2r(OpDef, type="fft_c2r"):
    r"""$$Out_j = s \sum_k X_k e^{\mp 2 \pi i\, jk / n}$$ along each axis, with the factor $s$ of `normalization`.

    X holds $k \le n / 2$ of the last axis, and the others are taken for what makes Out real:
    $X_{n-k} = \overline{X_k}$ in one dimension.
    """

    X = Input("Complex tensor of rank 1 or more. Points beyond n / 2 are not read.")
    Out = Output("Real, shape of X with n points along the last one of `axes`; no LoD.")
    axes = AXES
    normalization = NORMALIZATION
    forward = FORWARD
    last_dim_size = Attr(0, "n; 0 stands for 2 (m - 1) with the m points of X there.", type=AttrType.LONG).check(
        lambda v: v >= 0, "a number of points, or 0"
    )

    sbp = all_but("axes")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = points(ctx, real=True)
        size = ctx.attr("last_dim_size")
        if dims:
            held = dims[axes[-1]]
            ctx.require(
                held < 0 or ((size or held > 1) and size // 2 + 1 <= held),
                f"X has shape {dims}, {held} points along axis {axes[-1]}, and last_dim_size is {size}; expected "
                f"{size // 2 + 1 if size else 2} points or more there",
            )
            dims[axes[-1]] = size or (-1 if held < 0 else 2 * (held - 1))
        ctx.set_dim("Out", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", real_dtype(ctx.dtype("X")))


class FftC2rGrad(GradOpDef, of=FftC2r, reads="Out@GRAD", linear=True):
    r"""$$X@GRAD_k = w_k s \sum_j Out@GRAD_j\, e^{\pm 2 \pi i\, jk / n}$$

    with $w_k = 1$ where $k = 0$ or $k = n / 2$ along the last axis, and $w_k = 2$ for the others, which count twice.
    X@GRAD has the n // 2 + 1 points that are read: an X with more of them can't be differentiated.
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("Out@GRAD"))
        axis = ctx.axes("Out@GRAD", "axes")[-1]
        if dims and dims[axis] >= 0:
            dims[axis] = dims[axis] // 2 + 1
        ctx.set_dim("X@GRAD", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", complex_dtype(ctx.dtype("Out@GRAD")))
