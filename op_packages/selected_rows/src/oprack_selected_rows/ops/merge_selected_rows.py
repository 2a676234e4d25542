"""merge_selected_rows: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad


class MergeSelectedRows(OpDef, type="merge_selected_rows"):
    r"""$$Out.value_r = \sum_{i : X.rows_i = r} X.value_i$$: each row is listed once, in ascending order."""

    X = Input("SelectedRows whose rows may repeat.")
    Out = Output("SelectedRows of the same matrix.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
