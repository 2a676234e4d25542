"""teacher_student_sigmoid_loss and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class TeacherStudentSigmoidLoss(OpDef, type="teacher_student_sigmoid_loss"):
    r"""$$Y = \log(1 + e^X) - c X$$ where Label < 0, with c = 0 for labels below -1 and 1 for others, else $$Y = 2
    \log(1 + e^X) - Label \cdot X$$

    The click (c) alone where there is no teacher; with one, Label is its score z in [0, 1), or 1 + z after a click,
    and the losses of click and score are added.
    """

    X = Input("Scores [N, 1].")
    Label = Input("Click and the teacher's score in one number, shape of X.")
    Y = Output("Losses, shape and LoD of X.")
    soft_max_up_bound = Attr(15.0, "Where the gradient ends: none for scores from here on.")
    soft_max_lower_bound = Attr(-15.0, "Where the gradient starts: none for scores down from here.")
    sbp = leading(("X", "Label"), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Label")
        ctx.set_dim("Y", ctx.dim("X"))
        ctx.share_lod("X", "Y")


class TeacherStudentSigmoidLossGrad(GradOpDef, of=TeacherStudentSigmoidLoss, reads="X Label", grads_of="X"):
    r"""$$X@GRAD = Y@GRAD (\sigma(X) - c)$$ where Label < 0, else $$Y@GRAD (2 \sigma(X) - Label)$$; 0 outside of the
    bounds
    """
