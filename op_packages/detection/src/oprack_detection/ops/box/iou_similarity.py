"""iou_similarity: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import leading


class IouSimilarity(OpDef, type="iou_similarity"):
    r"""$$Out_{ij} = |X_i \cap Y_j| / |X_i \cup Y_j|$$ of boxes [xmin, ymin, xmax, ymax]; 0 where both are empty"""

    X = Input("Boxes [N, 4].")
    Y = Input("Boxes [M, 4].")
    Out = Output("Similarities [N, M], LoD of X.")
    box_normalized = Attr(True, "false: corners are pixels, so a box is xmax - xmin + 1 wide.")
    make_grad = empty_grad
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.require_rank("X", 2), ctx.require_rank("Y", 2)
        ctx.require(
            x[1] in (4, -1) and y[1] in (4, -1), f"X has shape {list(x)} and Y {list(y)}; expected boxes of 4 numbers"
        )
        ctx.set_dim("Out", (x[0], y[0]))
        ctx.share_lod("X", "Out")
