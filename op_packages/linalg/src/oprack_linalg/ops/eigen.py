"""Definitions of eigenvalues and eigenvectors."""

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
from oprack.types import complex_dtype, real_dtype

from oprack_linalg.ops._shapes import square_dims

# Rules that eigenvalue ops share.
UPLO = Attr("L", "Which triangle of X is read: L or U.").in_set({"L", "U"})


def values_and_vectors(ctx: InferShapeContext) -> None:
    """infer_shape: Eigenvalues and, of X's shape, Eigenvectors."""
    dims = square_dims(ctx, "X")
    ctx.set_dim("Eigenvalues", dims[:-1])
    ctx.set_dim("Eigenvectors", dims)


def real_values(ctx: InferVarTypeContext) -> None:
    """infer_var_type: Eigenvalues are real, Eigenvectors like X."""
    ctx.set_dtype("Eigenvalues", real_dtype(ctx.dtype("X")))
    ctx.set_dtype("Eigenvectors", ctx.dtype("X"))


def complex_values(ctx: InferVarTypeContext) -> None:
    """infer_var_type: Eigenvalues and Eigenvectors are complex."""
    for slot in ("Eigenvalues", "Eigenvectors"):
        ctx.set_dtype(slot, complex_dtype(ctx.dtype("X")))


# eig and its gradient.
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


# eigh and its gradient.
class Eigh(OpDef, type="eigh"):
    r"""$$X = V \operatorname{diag}(\Lambda) V^H$$ of a Hermitian matrix, of which one triangle is read."""

    X = Input("[..., N, N], symmetric, or Hermitian when it is complex.")
    Eigenvalues = Output("$\\Lambda$, real [..., N], the smallest one first.")
    Eigenvectors = Output("$V$, [..., N, N], orthonormal columns.")
    UPLO = UPLO
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


class Eigvals(OpDef, type="eigvals"):
    r"""The complex numbers $\lambda$ for which $$\det(X - \lambda I) = 0$$"""

    X = Input("[..., N, N].")
    Out = Output("Complex [..., N], in no special order.")
    make_grad = empty_grad
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "X")[:-1])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", complex_dtype(ctx.dtype("X")))


# eigvalsh and its gradient.
class Eigvalsh(OpDef, type="eigvalsh"):
    r"""Eigenvalues $\Lambda$ of a Hermitian matrix $$X = V \operatorname{diag}(\Lambda) V^H$$"""

    X = Input("[..., N, N], symmetric, or Hermitian when it is complex.")
    Eigenvalues = Output("$\\Lambda$, real [..., N], the smallest one first.")
    Eigenvectors = Output("$V$, [..., N, N], for the gradient; [0] with `is_test`.", stop_gradient=True)
    UPLO = UPLO
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
