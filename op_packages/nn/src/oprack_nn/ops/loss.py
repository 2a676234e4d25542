"""Definitions of losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import out_like_x
from oprack.op.sbp import elementwise, leading
from oprack.types import AttrType
from oprack_math.composition import composed, masked

# What definitions of losses share.
IGNORE_INDEX = Attr(-100, "Rows with this hard label have loss 0.")


def require_labels(ctx: InferShapeContext, x: Sequence[int], label: Sequence[int], slots: str, axis: int = -1) -> None:
    """Labels must have the shape of x with 1 instead of the classes at `axis`, or without that dim."""
    axis %= len(x)
    kept = [n for i, n in enumerate(x) if i != axis]
    given = [n for i, n in enumerate(label) if i != axis] if len(label) == len(x) else list(label)
    fits = len(given) == len(kept) and all(a == b or a < 0 or b < 0 for a, b in zip(given, kept, strict=True))
    if len(label) == len(x):
        fits = fits and label[axis] in (1, -1)
    expected = [1 if i == axis else n for i, n in enumerate(x)]
    ctx.require(fits, f"{slots} have shapes {list(x)} and {list(label)}; expected labels of shape {expected}")


def loss_dims(x: Sequence[int], label: Sequence[int], axis: int = -1) -> list[int]:
    """Shape of x with 1 at `axis`, or without that dim when the labels have none."""
    axis %= len(x)
    if len(label) == len(x):
        return [1 if i == axis else n for i, n in enumerate(x)]
    return [n for i, n in enumerate(x) if i != axis]


class BCELoss(OpDef, type="bce_loss"):
    r"""$$Out = -Label \ln X - (1 - Label) \ln(1 - X)$$ per element, logarithms bounded below by -100"""

    X = Input("Probabilities of any shape.")
    Label = Input("Targets in [0, 1], shape of X.")
    Out = Output("Losses, shape and LoD of X.")
    inplace = {"X": "Out"}
    sbp = elementwise(("X", "Label"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Label")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class BCELossGrad(GradOpDef, of=BCELoss, reads="X Label", grads_of="X"):
    r"""$$X@GRAD = Out@GRAD (X - Label) / \max(X (1 - X), 10^{-12})$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class BprLoss(OpDef, type="bpr_loss"):
    r"""Bayesian personalised ranking: $$Y = -\frac{1}{C - 1} \sum_{j \ne Label} \ln \sigma(X_{Label} - X_j)$$"""

    X = Input("Scores [..., C].")
    Label = Input("Positive item [..., 1].")
    Y = Output("Losses [..., 1], LoD of X.")
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "Label"), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, label = ctx.dim("X"), ctx.dim("Label")
        require_labels(ctx, x, label, "X and Label")
        ctx.require(x[-1] > 1 or x[-1] < 0, f"X has shape {list(x)}; expected two or more items in the last dim")
        ctx.set_dim("Y", (*x[:-1], 1))
        ctx.share_lod("X", "Y")


class BprLossGrad(GradOpDef, of=BprLoss, reads="X Label", grads_of="X"):
    r"""$$X@GRAD_j = Y@GRAD \cdot \sigma(X_j - X_{Label}) / (C - 1)$$, and minus their sum at the label"""

    expected_kernel_type = dtype_of("X")


# cos_sim (Paddle 1.x): all of the op but its kernels.
class CosSim(OpDef, type="cos_sim"):
    r"""$$Out = \frac{X \cdot Y}{\|X\| \|Y\|}$$ per row; all dims but the first make up a row"""

    X = Input("Rows [N, ...].")
    Y = Input("Rows [N, ...], or one row [1, ...] for all.")
    Out = Output("Cosines [N, 1], LoD of X.")
    XNorm = Output("Norms of X [N, 1].", intermediate=True)
    YNorm = Output("Norms of Y [N or 1, 1].", intermediate=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        fits = len(x) == len(y) >= 2 and all(a == b or -1 in (a, b) for a, b in zip(x[1:], y[1:], strict=True))
        ctx.require(fits, f"X has shape {list(x)} and Y {list(y)}; expected equal shapes but for the first dim")
        ctx.require(y[0] in (x[0], 1, -1) or x[0] < 0, f"Y has {y[0]} rows; expected 1 or {x[0]}, the rows of X")
        ctx.set_dim("Out", (x[0], 1))
        ctx.set_dim("XNorm", (x[0], 1))
        ctx.set_dim("YNorm", (y[0], 1))
        ctx.share_lod("X", "Out")


class CosSimGrad(GradOpDef, of=CosSim, reads="X Y XNorm YNorm Out Out@GRAD"):
    r"""$$X@GRAD = Out@GRAD (\frac{Y}{\|X\| \|Y\|} - Out \frac{X}{\|X\|^2})$$, and the same for Y"""


class CrossEntropy(OpDef, type="cross_entropy"):
    r"""$$Y = -\ln X_{Label}$$, or with soft_label $$Y = -\sum_j Label_j \ln X_j$$; classes are in the last dim.

    X holds probabilities, as in Fluid. For logits, which Paddle 2's and PyTorch's functions of this name take, there
    are softmax_with_cross_entropy and oprack.nn.CrossEntropyLoss.
    """

    X = Input("Probabilities [..., classes], not logits.")
    Label = Input("Indices [..., 1] or [...]; with soft_label distributions of the shape of X.")
    Y = Output("Losses [..., 1] or [...], LoD of X.")
    soft_label = Attr(False, "Label holds a distribution instead of an index.")
    ignore_index = IGNORE_INDEX
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "Label"), ("Y",), lambda ctx: len(ctx.dim("X")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        x, label = ctx.dim("X"), ctx.dim("Label")
        if ctx.attr("soft_label"):
            ctx.same_dims("X", "Label")
        else:
            require_labels(ctx, x, label, "X and Label")
        ctx.set_dim("Y", loss_dims(x, label))
        ctx.share_lod("X", "Y")


class CrossEntropyGrad(GradOpDef, of=CrossEntropy, reads="X Label", grads_of="X"):
    r"""$$X@GRAD_j = -Y@GRAD \cdot Label_j / X_j$$, hard labels taken as one-hot"""

    expected_kernel_type = dtype_of("X")


def _output_dims(ctx: InferShapeContext) -> tuple[int, int, int]:
    x, y = ctx.require_rank("X", 4), ctx.require_rank("Y", 4)
    ctx.require_dims("Y", (x[0], -1, *x[2:]), why="the images of X, with channels of their own")
    return x[0], x[1], y[1]


class Fsp(OpDef, type="fsp"):
    r"""$$Out_{n,i,j} = \frac{1}{H W} \sum_{y,x} X_{n,i,y,x} Y_{n,j,y,x}$$

    The flow between two layers of a net, which distillation compares (Yim et al., 2017).
    """

    X = Input("[N, C, H, W].")
    Y = Input("[N, D, H, W].")
    Out = Output("[N, C, D].")
    sbp = leading(("X", "Y"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))
        ctx.share_lod("X", "Out")


class FspGrad(GradOpDef, of=Fsp, reads="X Y", dims={"Out@GRAD": _output_dims}):
    r"""$$X@GRAD_{n,i} = \frac{1}{H W} \sum_j Out@GRAD_{n,i,j} Y_{n,j}$$, and Y@GRAD likewise"""


class HingeLoss(OpDef, type="hinge_loss"):
    r"""$$Loss = \max(0, 1 - (2 Labels - 1) Logits)$$"""

    Logits = Input("Scores [N, 1].")
    Labels = Input("0 or 1, shape of Logits.")
    Loss = Output("Losses, shape and LoD of Logits.")
    sbp = elementwise(("Logits", "Labels"), ("Loss",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Logits", "Labels")
        ctx.set_dim("Loss", ctx.dim("Logits"))
        ctx.share_lod("Logits", "Loss")


class HingeLossGrad(GradOpDef, of=HingeLoss, reads="Logits Labels", grads_of="Logits"):
    r"""$$Logits@GRAD = -Loss@GRAD (2 Labels - 1)$$ where the loss is positive, else 0"""


class HuberLoss(OpDef, type="huber_loss"):
    r"""$$Out = r^2 / 2$$ where $$|r| \le delta$$, else $$delta (|r| - delta / 2)$$, with $$r = Y - X$$"""

    X = Input("Predictions of any shape.")
    Y = Input("Targets, shape of X.")
    Out = Output("Losses, shape and LoD of X.")
    Residual = Output("Y - X, kept for the gradient.", intermediate=True)
    delta = Attr(REQUIRED, "Where the loss turns from quadratic to linear.", type=AttrType.FLOAT)
    sbp = elementwise(("X", "Y"), ("Out", "Residual"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        for slot in ("Out", "Residual"):
            ctx.set_dim(slot, ctx.dim("X"))
        ctx.share_lod("X", "Out")


class HuberLossGrad(GradOpDef, of=HuberLoss, reads="Residual", like="Residual"):
    r"""$$Y@GRAD = Out@GRAD \cdot \min(\max(Residual, -delta), delta)$$ and $$X@GRAD = -Y@GRAD$$"""


_REDUCTION = "0: sum. 1: mean. 2: none."


class IdentityLoss(OpDef, type="identity_loss"):
    r"""$$Out = \sum_i X_i, \; \frac{1}{n} \sum_i X_i$$ or X itself, as reduction is 0, 1 or 2: marks a value as the
    loss.
    """

    X = Input("Tensor of any shape.")
    Out = Output("0-D, or shape of X with reduction 2.")
    reduction = Attr(1, _REDUCTION).between(0, 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.attr("reduction") == 2:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")
        else:
            ctx.set_dim("Out", ())


class IdentityLossGrad(GradOpDef, of=IdentityLoss, shape_of="X"):
    """Out@GRAD spread over X, divided by the number of elements for a mean."""


_KLDIV_LOSS_REDUCTION = "none, batchmean (sum / first dim), mean or sum."


class KLDivLoss(OpDef, type="kldiv_loss"):
    r"""$$Loss = Target (\ln Target - X)$$ where $$Target > 0$$, else 0; then reduced. X holds logarithms."""

    X = Input("Logarithms of probabilities, any shape.")
    Target = Input("Probabilities, shape of X.")
    Loss = Output("Shape of X, or 0-D when reduced.")
    reduction = Attr("mean", _KLDIV_LOSS_REDUCTION).in_set(("none", "batchmean", "mean", "sum"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Target")
        ctx.set_dim("Loss", ctx.dim("X") if ctx.attr("reduction") == "none" else ())


class KLDivLossGrad(GradOpDef, of=KLDivLoss, reads="Target", shape_of="X", grads_of="X"):
    r"""$$X@GRAD = -Target \cdot Loss@GRAD$$ where $$Target > 0$$, divided as the loss was"""


class LabelSmooth(OpDef, type="label_smooth"):
    r"""$$Out = (1 - epsilon) X + epsilon \cdot p$$ with p = PriorDist, or 1 / classes"""

    X = Input("One-hot or soft labels, classes in the last dim.")
    PriorDist = Input("Prior of the classes [1, classes].", dispensable=True)
    Out = Output("Shape and LoD of X.")
    epsilon = Attr(0.0, "Weight of the prior.").between(0.0, 1.0)
    sbp = leading(("X",), ("Out",))
    infer_shape = out_like_x


class LabelSmoothGrad(GradOpDef, of=LabelSmooth, grads_of="X", like="Out@GRAD"):
    r"""$$X@GRAD = (1 - epsilon) Out@GRAD$$"""

    make_grad = masked


class LogLoss(OpDef, type="log_loss"):
    r"""$$Loss = -Labels \ln(Predicted + epsilon) - (1 - Labels) \ln(1 - Predicted + epsilon)$$"""

    Predicted = Input("Probabilities [N, 1].")
    Labels = Input("0 or 1 [N, 1].")
    Loss = Output("Losses [N, 1], LoD of Predicted.")
    epsilon = Attr(REQUIRED, "Added inside both logarithms.", type=AttrType.FLOAT)
    sbp = elementwise(("Predicted", "Labels"), ("Loss",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Predicted", "Labels")
        ctx.set_dim("Loss", ctx.dim("Predicted"))
        ctx.share_lod("Predicted", "Loss")


class LogLossGrad(GradOpDef, of=LogLoss, reads="Predicted Labels", grads_of="Predicted"):
    r"""$$Predicted@GRAD = Loss@GRAD ((1 - Labels) / (1 - Predicted + epsilon) - Labels / (Predicted + epsilon))$$"""

    @composed
    def make_grad(o: Any, Predicted: Any, Labels: Any, Loss_grad: Any) -> Any:
        epsilon = o.attrs["epsilon"]
        return Loss_grad * ((1.0 - Labels) / (1.0 + epsilon - Predicted) - Labels / (Predicted + epsilon))


# margin_rank_loss (Paddle 1.x): all of the op but its kernels.
class MarginRankLoss(OpDef, type="margin_rank_loss"):
    r"""$$Out = \max(0, -Label (X1 - X2) + margin)$$"""

    X1 = Input("Scores [N, 1].")
    X2 = Input("Scores [N, 1].")
    Label = Input("1 when X1 should rank above X2, else -1 [N, 1].")
    Activated = Output("1 where the loss is positive, else 0.", intermediate=True)
    Out = Output("Losses [N, 1].")
    margin = Attr(0.0, "Gap between the scores below which there is a loss.")
    sbp = leading(("X1", "X2", "Label"), ("Out", "Activated"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X1", "X2")
        ctx.same_dims("X1", "Label")
        for slot in ("Activated", "Out"):
            ctx.set_dim(slot, ctx.dim("Label"))


class MarginRankLossGrad(
    GradOpDef, of=MarginRankLoss, reads="Activated Label Out@GRAD", grads_of="X1 X2", like="Label", lod=False
):
    r"""$$X2@GRAD = Out@GRAD \cdot Activated \cdot Label$$ and $$X1@GRAD = -X2@GRAD$$"""


class ModifiedHuberLoss(OpDef, type="modified_huber_loss"):
    r"""$$Out = \max(0, 1 - z)^2$$ where $$z = (2 Y - 1) X \ge -1$$, else $$Out = -4 z$$"""

    X = Input("Scores [N, 1].")
    Y = Input("0 or 1, shape of X.")
    IntermediateVal = Output("z, kept for the gradient.", intermediate=True)
    Out = Output("Losses, shape and LoD of X.")
    sbp = leading(("X", "Y"), ("Out", "IntermediateVal"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        for slot in ("IntermediateVal", "Out"):
            ctx.set_dim(slot, ctx.dim("X"))
        ctx.share_lod("X", "Out")


class ModifiedHuberLossGrad(
    GradOpDef, of=ModifiedHuberLoss, reads="Y IntermediateVal", grads_of="X", like="IntermediateVal"
):
    r"""$$X@GRAD = -2 \min(2, \max(0, 1 - z)) (2 Y - 1) Out@GRAD$$"""


_NLL_LOSS_REDUCTION = "none, mean (sum / Total_weight) or sum."


class NLLLoss(OpDef, type="nll_loss"):
    r"""$$Out = -Weight_{Label} \cdot X_{Label}$$, then reduced; X holds logarithms of probabilities"""

    X = Input("Log-probabilities [N, C] or [N, C, H, W].")
    Label = Input("Classes [N] or [N, H, W].")
    Weight = Input("Weight of each class [C].", dispensable=True)
    Out = Output("Shape of Label, or 0-D when reduced.")
    Total_weight = Output("0-D: sum of the weights of the labels; 0 without a reduction.", stop_gradient=True)
    ignore_index = Attr(-100, "Labels of this value have loss and weight 0.", type=AttrType.LONG)
    reduction = Attr("mean", _NLL_LOSS_REDUCTION).in_set(("none", "mean", "sum"))
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, label = ctx.require_rank("X", 2, 4), ctx.dim("Label")
        expected = (x[0], *x[2:])
        fits = len(label) == len(expected) and all(a == b or -1 in (a, b) for a, b in zip(label, expected, strict=True))
        ctx.require(fits, f"X has shape {list(x)} and Label {list(label)}; expected labels of shape {list(expected)}")
        if ctx.has_input("Weight"):
            w = ctx.require_rank("Weight", 1)
            ctx.require(w[0] == x[1] or -1 in (w[0], x[1]), f"Weight has shape {list(w)}; expected [{x[1]}]")
        ctx.set_dim("Out", label if ctx.attr("reduction") == "none" else ())
        ctx.set_dim("Total_weight", ())


class NLLLossGrad(GradOpDef, of=NLLLoss, reads="X Label Weight Total_weight Out@GRAD", grads_of="X"):
    r"""$$X@GRAD_{Label} = -Weight_{Label} \cdot Out@GRAD$$ (/ Total_weight for a mean), 0 elsewhere"""


class RankLoss(OpDef, type="rank_loss"):
    r"""$$Out = \ln(1 + e^{Left - Right}) - Label (Left - Right)$$"""

    Label = Input("Probability that Left ranks above Right [N, 1].")
    Left = Input("Scores [N, 1].")
    Right = Input("Scores [N, 1].")
    Out = Output("Losses, shape of Label.")
    sbp = leading(("Label", "Left", "Right"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Left", "Right")
        ctx.same_dims("Left", "Label")
        ctx.set_dim("Out", ctx.dim("Label"))
        ctx.share_lod("Label", "Out")


class RankLossGrad(GradOpDef, of=RankLoss, reads="Label Left Right", grads_of="Left Right"):
    r"""$$Left@GRAD = Out@GRAD (\sigma(Left - Right) - Label)$$ and $$Right@GRAD = -Left@GRAD$$"""


# squared_l2_distance (Paddle 1.x): all of the op but its kernels.
class SquaredL2Distance(OpDef, type="squared_l2_distance"):
    r"""$$Out = \sum_j (X_j - Y_j)^2$$ per row; all dims but the first make up a row"""

    X = Input("Rows [N, ...].")
    Y = Input("Rows [N, ...], or one row [1, ...] for all.")
    sub_result = Output("X - Y as [N, row size].", intermediate=True)
    Out = Output("Squared distances [N, 1], LoD of X.")
    sbp = leading(("X", "Y"), ("sub_result", "Out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        size, other = (-1 if -1 in d[1:] else math.prod(d[1:]) for d in (x, y))
        ctx.require(
            len(x) >= 2 and len(x) == len(y) and (size == other or -1 in (size, other)),
            f"X has shape {list(x)} and Y {list(y)}; expected rows of equal size",
        )
        ctx.require(y[0] in (x[0], 1, -1) or x[0] < 0, f"Y has {y[0]} rows; expected 1 or {x[0]}, the rows of X")
        ctx.set_dim("sub_result", (x[0], size))
        ctx.set_dim("Out", (x[0], 1))
        ctx.share_lod("X", "Out")


class SquaredL2DistanceGrad(GradOpDef, of=SquaredL2Distance, reads="sub_result", shape_of="X Y"):
    r"""$$X@GRAD = 2 Out@GRAD \cdot sub\_result$$ and $$Y@GRAD = -X@GRAD$$, summed when Y is one row"""


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
