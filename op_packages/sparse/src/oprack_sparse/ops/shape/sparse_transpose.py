"""sparse_transpose and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output
from oprack.types import AttrType

from oprack_sparse.ops.shape._family import MovedGrad


class SparseTranspose(OpDef, type="sparse_transpose"):
    r"""$$out_{i_{perm_0}, i_{perm_1}, \ldots} = x_{i_0, i_1, \ldots}$$"""

    x = Input("Sparse tensor.")
    out = Output("Sparse tensor of x's layout: in COO, elements in x's order, in CSR sorted.")
    perm = Attr(REQUIRED, "Which dim of x each dim of out is; dense dims stay behind sparse ones.", type=AttrType.INTS)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, perm = ctx.dim("x"), [p % max(len(ctx.dim("x")), 1) for p in ctx.attr("perm")]
        if dims or ctx.is_runtime:
            right = sorted(perm) == list(range(len(dims)))
            ctx.require(right, f"perm is {list(ctx.attr('perm'))}, x has shape {list(dims)}; expected each dim once")
            ctx.set_dim("out", [dims[p] for p in perm])


class SparseTransposeGrad(MovedGrad, of=SparseTranspose):
    r"""$$x@GRAD_{i_0, i_1, \ldots} = out@GRAD_{i_{perm_0}, i_{perm_1}, \ldots}$$ where x lists an element."""
