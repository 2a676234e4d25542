"""merge_selected_rows: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class MergeSelectedRows(OpDef, type="merge_selected_rows"):
    """Lists each row once, in ascending order; values of one row are added."""

    X = Input("SelectedRows whose rows may repeat.")
    Out = Output("SelectedRows of the same matrix.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
