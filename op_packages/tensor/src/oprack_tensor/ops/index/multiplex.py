"""multiplex and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class Multiplex(OpDef, type="multiplex"):
    r"""$$Out_i = X[Ids_i]_i$$ row i of the tensor that Ids names."""

    X = Input("Tensors of one shape, of rank 2 or more.", duplicable=True)
    Ids = Input("int32 [n, 1], which tensor each of the n rows comes from.")
    Out = Output("Shape of X[0] with n rows; LoD of X[0].")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes, ids = ctx.dims("X"), ctx.dim("Ids")
        ctx.require(
            len(shapes[0]) >= 2 and all(s == shapes[0] for s in shapes),
            f"X has tensors of shapes {[list(s) for s in shapes]}; expected one shape of rank 2 or more",
        )
        ctx.require(len(ids) == 2 and ids[1] in (1, -1), f"Ids has shape {list(ids)}; expected [n, 1]")
        rows = shapes[0][0]
        ctx.require(
            -1 in (rows, ids[0]) or ids[0] <= rows, f"Ids has {ids[0]} rows and X {rows}; expected at most as many"
        )
        ctx.set_dim("Out", (ids[0], *shapes[0][1:]))
        ctx.share_lod("X", "Out")


class MultiplexGrad(GradOpDef, of=Multiplex, reads="X Ids", shape_of="X", grads_of="X"):
    r"""$$X[k]@GRAD_i = Out@GRAD_i \cdot [Ids_i = k]$$"""

    expected_kernel_type = dtype_of("Out@GRAD")
