"""Definitions of losses of detectors."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import leading


# sigmoid_focal_loss (Paddle 1.x) and its gradient: all of the ops but their kernels.
class SigmoidFocalLoss(OpDef, type="sigmoid_focal_loss"):
    r"""$$Out = -\frac{alpha}{f} (1 - p)^{gamma} \log p$$ for the class of a row, $$-\frac{1 - alpha}{f} p^{gamma}
    \log(1 - p)$$ for the others, with $$p = \sigma(X)$$ and $$f = \max(FgNum, 1)$$

    The loss of RetinaNet (Lin et al., 2017). Rows of label 0 are of no class, and those of -1 have no loss.
    """

    X = Input("Scores [N, classes].")
    Label = Input("Classes [N, 1] from 1 on, int32; 0: background; -1: left out.")
    FgNum = Input("Rows that have a class [1], int32.")
    Out = Output("Losses, shape and LoD of X.")
    gamma = Attr(2.0, "How much easy rows count less.")
    alpha = Attr(0.25, "Share of the rows of a class.")
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "Label"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        rows = ctx.require_rank("X", 2)[0]
        ctx.require_dims("Label", (rows, 1), why="a label for each row of X")
        ctx.require_dims("FgNum", (1,))
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class SigmoidFocalLossGrad(GradOpDef, of=SigmoidFocalLoss, reads="X Label FgNum", grads_of="X"):
    r"""$$X@GRAD = \frac{alpha}{f} (1 - p)^{gamma} (gamma \, p \log p + p - 1) Out@GRAD$$ for the class of a row,
    $$\frac{1 - alpha}{f} p^{gamma} (p - gamma (1 - p) \log(1 - p)) Out@GRAD$$ for the others
    """
