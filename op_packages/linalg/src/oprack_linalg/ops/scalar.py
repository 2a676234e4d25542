"""Definitions of numbers that say something of a matrix."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import joined_batch, matrix_dims, square_dims


# determinant and its gradient.
class Determinant(OpDef, type="determinant"):
    r"""$$Out = \det(Input)$$"""

    Input_ = Input("[..., N, N].", name="Input")
    Out = Output("[...]; no LoD.")
    sbp = leading(("Input",), ("Out",), lambda ctx: len(ctx.dim("Input")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "Input")[:-2])


class DeterminantGrad(GradOpDef, of=Determinant, reads="Input Out"):
    r"""$$Input@GRAD = Out@GRAD \cdot \operatorname{adj}(Input)^T$$

    The adjugate is $Out \cdot Input^{-1}$ where that exists, and is there for singular matrices as well.
    """


class MatrixRank(OpDef, type="matrix_rank"):
    r"""$$Out = |\{i : \sigma_i > \max(tol, \epsilon \max(M, N)\,\sigma_{max})\}|$$

    $\sigma$ are the singular values of X. The term with $\epsilon$, the precision of the dtype, counts with
    `use_default_tol`, and TolTensor takes the place of `tol`.
    """

    X = Input("[..., M, N].")
    TolTensor = Input("Tolerances, whose shape broadcasts with X's batch dims.", dispensable=True)
    Out = Output("int32, X's batch dims, broadcast with TolTensor's shape.")
    tol = Attr(0.0, "The tolerance; ignored with `use_default_tol`.")
    hermitian = Attr(False, "X is symmetric: its eigenvalues, without sign, are the singular values.")
    use_default_tol = Attr(True, "Use the tolerance that follows from the dtype.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = square_dims(ctx, "X") if ctx.attr("hermitian") else matrix_dims(ctx, "X")
        tolerances = ctx.dim("TolTensor") if ctx.has_input("TolTensor") else ()
        ctx.set_dim("Out", joined_batch(ctx, dims[:-2], tolerances))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32")


# slogdeterminant and its gradient.
class Slogdeterminant(OpDef, type="slogdeterminant"):
    r"""$$Out_0 = \operatorname{sign} \det(Input),\quad Out_1 = \ln |\det(Input)|$$"""

    Input_ = Input("[..., N, N].", name="Input")
    Out = Output("[2, ...]: the signs, then the logarithms; 0 and minus infinity of a singular matrix; no LoD.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (2, *square_dims(ctx, "Input")[:-2]))


class SlogdeterminantGrad(GradOpDef, of=Slogdeterminant, reads="Input Out", shape_of="Out"):
    r"""$$Input@GRAD = Out@GRAD_1 \cdot Input^{-T}$$ The sign has no gradient."""
