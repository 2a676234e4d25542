"""fft_r2c and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import all_but
from oprack.types import AttrType, complex_dtype, real_dtype

from oprack_fft.ops._transform import AXES, FORWARD, NORMALIZATION, points


class FftR2c(OpDef, type="fft_r2c"):
    r"""$$Out_k = s \sum_j X_j e^{\mp 2 \pi i\, jk / n}$$ along each axis, with the factor $s$ of `normalization`.

    With `onesided` the last axis keeps $k \le n / 2$, since the others follow: $Out_{n-k} = \overline{Out_k}$ in one
    dimension.
    """

    X = Input("Real tensor of rank 1 or more.")
    Out = Output("Complex, shape of X; the last one of `axes` has n // 2 + 1 points with `onesided`; no LoD.")
    axes = AXES
    normalization = NORMALIZATION
    forward = FORWARD
    onesided = Attr(REQUIRED, "Leave out what follows from the rest.", type=AttrType.BOOLEAN)

    sbp = all_but("axes")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = points(ctx, real=True)
        if ctx.attr("onesided") and dims and dims[axes[-1]] >= 0:
            dims[axes[-1]] = dims[axes[-1]] // 2 + 1
        ctx.set_dim("Out", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", complex_dtype(ctx.dtype("X")))


class FftR2cGrad(GradOpDef, of=FftR2c, reads="X Out@GRAD", shape_of="X", linear=True):
    r"""$$X@GRAD_j = \operatorname{Re}\, s \sum_k Out@GRAD_k\, e^{\pm 2 \pi i\, jk / n}$$ over the $k$ of Out."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", real_dtype(ctx.dtype("Out@GRAD")))
