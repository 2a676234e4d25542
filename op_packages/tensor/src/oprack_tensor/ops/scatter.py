"""scatter: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class Scatter(OpDef, type="scatter"):
    r"""$$Out_r = Updates_i$$ where $$Ids_i = r$$, else $$X_r$$; of equal Ids the last one counts. With overwrite false
    $$Out_r = \sum_{i : Ids_i = r} Updates_i$$ there.
    """

    X = Input("Tensor of rank 1 or more.")
    Ids = Input("int32 or int64 [n], [n, 1] or 0-D: rows of X.")
    Updates = Input("[n, dims of a row]; one row for a 0-D Ids.")
    Out = Output("Shape and LoD of X.")
    overwrite = Attr(True, "Replace a row (the last of several wins) instead of summing.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, ids, updates = ctx.dim("X"), ctx.dim("Ids"), ctx.dim("Updates")
        ctx.require(
            len(ids) < 2 or (len(ids) == 2 and ids[1] == 1), f"Ids has shape {list(ids)}; expected [n], [n, 1] or []"
        )
        expected = len(dims) if ids else len(dims) - 1
        ctx.require(
            len(updates) == expected and (not ids or ids[0] in (-1, updates[0]) or updates[0] == -1),
            f"Updates has shape {list(updates)} but Ids {list(ids)} and X {list(dims)}; expected one row for each id",
        )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class ScatterGrad(GradOpDef, of=Scatter, reads="Ids", shape_of="Updates", grads_of="X? Updates?", like="Out@GRAD"):
    """X@GRAD is Out@GRAD with the rows Ids zeroed; Updates@GRAD holds those rows."""
