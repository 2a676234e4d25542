"""eigh and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import square_dims
from oprack_linalg.ops.eigen._family import UPLO as _UPLO
from oprack_linalg.ops.eigen._family import real_values, values_and_vectors


class Eigh(OpDef, type="eigh"):
    r"""$$X = V \operatorname{diag}(\Lambda) V^H$$ of a Hermitian matrix, of which one triangle is read."""

    X = Input("[..., N, N], symmetric, or Hermitian when it is complex.")
    Eigenvalues = Output("$\\Lambda$, real [..., N], the smallest one first.")
    Eigenvectors = Output("$V$, [..., N, N], orthonormal columns.")
    UPLO = _UPLO
    infer_shape = values_and_vectors
    infer_var_type = real_values
    sbp = leading(("X",), ("Eigenvalues", "Eigenvectors"), lambda ctx: len(ctx.dim("X")) - 2)


class EighGrad(GradOpDef, of=Eigh, reads="Eigenvalues Eigenvectors"):
    r"""The Hermitian part of $$V (\operatorname{diag}(\Lambda@GRAD) + E \circ (V^H V@GRAD)) V^H$$

    with $E_{ij} = 1 / (\Lambda_j - \Lambda_i)$ and $E_{ii} = 0$. Equal eigenvalues have no gradient.
    """

    expected_kernel_type = dtype_of("Eigenvectors")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", square_dims(ctx, "Eigenvectors"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", ctx.dtype("Eigenvectors"))
