"""Rules that eigenvalue ops share."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext
from oprack.types import complex_dtype, real_dtype

from oprack_linalg.ops._shapes import square_dims

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
