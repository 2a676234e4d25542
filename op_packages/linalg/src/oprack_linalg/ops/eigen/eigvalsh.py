"""eigvalsh and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import square_dims
from oprack_linalg.ops.eigen._family import UPLO as _UPLO
from oprack_linalg.ops.eigen._family import real_values


class Eigvalsh(OpDef, type="eigvalsh"):
    r"""Eigenvalues $\Lambda$ of a Hermitian matrix $$X = V \operatorname{diag}(\Lambda) V^H$$"""

    X = Input("[..., N, N], symmetric, or Hermitian when it is complex.")
    Eigenvalues = Output("$\\Lambda$, real [..., N], the smallest one first.")
    Eigenvectors = Output("$V$, [..., N, N], for the gradient; [0] with `is_test`.", stop_gradient=True)
    UPLO = _UPLO
    is_test = Attr(False, "No gradient will be asked for, so that $V$ need not be computed.")
    infer_var_type = real_values
    sbp = leading(("X",), ("Eigenvalues", "Eigenvectors"), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = square_dims(ctx, "X")
        ctx.set_dim("Eigenvalues", dims[:-1])
        ctx.set_dim("Eigenvectors", (0,) if ctx.attr("is_test") else dims)


class EigvalshGrad(GradOpDef, of=Eigvalsh, reads="Eigenvectors Eigenvalues@GRAD"):
    r"""$$X@GRAD = V \operatorname{diag}(\Lambda@GRAD) V^H$$"""

    expected_kernel_type = dtype_of("Eigenvectors")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            not ctx.attr("is_test"),
            "is_test is true, so that the forward op kept no eigenvectors; set is_test=False to differentiate it",
        )
        ctx.set_dim("X@GRAD", square_dims(ctx, "Eigenvectors"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", ctx.dtype("Eigenvectors"))
