"""dtypes of complex numbers and of their parts."""

from __future__ import annotations

from oprack.op import InferVarTypeContext
from oprack.types import complex_dtype, real_dtype


def set_complex(ctx: InferVarTypeContext, source: str, target: str) -> None:
    """Part of a type rule: `target` holds complex numbers whose parts have the dtype of `source`."""
    ctx.set_dtype(target, complex_dtype(ctx.dtype(source)))


def set_part(ctx: InferVarTypeContext, source: str, target: str) -> None:
    """Part of a type rule: `target` holds the parts of complex numbers; real numbers stay as they are."""
    ctx.set_dtype(target, real_dtype(ctx.dtype(source)))


def part_of_x(ctx: InferVarTypeContext) -> None:
    """infer_var_type of an op whose Out is one part of each element of X."""
    set_part(ctx, "X", "Out")


def complex_of_out_grad(ctx: InferVarTypeContext) -> None:
    """infer_var_type of the gradient of a part."""
    set_complex(ctx, "Out@GRAD", "X@GRAD")
