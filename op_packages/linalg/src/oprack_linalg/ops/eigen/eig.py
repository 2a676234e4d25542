"""eig and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import square_dims
from oprack_linalg.ops.eigen._family import complex_values, values_and_vectors


class Eig(OpDef, type="eig"):
    r"""$$X V = V \operatorname{diag}(\Lambda)$$ with columns of $V$ of norm 1."""

    X = Input("[..., N, N].")
    Eigenvalues = Output("$\\Lambda$, complex [..., N], in no special order.")
    Eigenvectors = Output("$V$, complex [..., N, N].")
    infer_shape = values_and_vectors
    infer_var_type = complex_values
    sbp = leading(("X",), ("Eigenvalues", "Eigenvectors"), lambda ctx: len(ctx.dim("X")) - 2)


class EigGrad(GradOpDef, of=Eig, reads="Eigenvalues Eigenvectors"):
    r"""$$X@GRAD = V^{-H} (\operatorname{diag}(\Lambda@GRAD) + E \circ (V^H V@GRAD - V^H V D)) V^H$$

    with $D = \operatorname{diag}(\operatorname{Re}(V^H V@GRAD))$, $E_{ij} = 1 / \overline{\Lambda_j - \Lambda_i}$ and
    $E_{ii} = 0$; its real part for real X. Equal eigenvalues have no gradient.
    """

    expected_kernel_type = dtype_of("Eigenvectors")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("X@GRAD", square_dims(ctx, "Eigenvectors"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        """X@GRAD keeps the dtype of X, which no input of this op shows."""
