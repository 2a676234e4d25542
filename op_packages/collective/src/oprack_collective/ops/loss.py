"""Definitions of ops for losses of classes that ranks share."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of
from oprack.types import AttrType

from oprack_collective.ops._attrs import RING_ID


class CSoftmaxWithCrossEntropy(OpDef, type="c_softmax_with_cross_entropy"):
    r"""$$Loss = \ln Z - Logits_{Label}, \quad Softmax = e^{Logits} / Z, \quad Z = \sum_r \sum_j e^{Logits_{r,j}}$$

    Each rank r of the ring has the scores of as many classes, those from rank * classes on; the sums are over all of
    them.
    """

    Logits = Input("[..., classes]: the scores of this rank's classes.")
    Label = Input("[..., 1]: indices among the classes of all ranks, the same on each rank.")
    Softmax = Output("Probabilities of this rank's classes, shape and LoD of Logits.")
    Loss = Output("[..., 1], the same on each rank; LoD of Logits.")
    ignore_index = Attr(-100, "Labels of this value have loss 0.", type=AttrType.LONG)
    ring_id = RING_ID
    rank = Attr(0, "This rank in the ring.")
    nranks = Attr(0, "Number of ranks of the ring.")
    inplace = {"Logits": "Softmax"}
    expected_kernel_type = dtype_of("Logits")

    def infer_shape(ctx: InferShapeContext) -> None:
        logits, label = ctx.dim("Logits"), ctx.dim("Label")
        fits = len(label) == len(logits) > 0 and label[-1] in (1, -1)
        fits = fits and all(a == b or a < 0 or b < 0 for a, b in zip(logits[:-1], label[:-1], strict=True))
        ctx.require(
            fits, f"Label has shape {list(label)}; expected that of Logits {list(logits)} with 1 at the last dim"
        )
        ctx.set_dim("Softmax", logits)
        ctx.set_dim("Loss", (*logits[:-1], 1))
        ctx.share_lod("Logits", "Softmax")
        ctx.share_lod("Logits", "Loss")


class CSoftmaxWithCrossEntropyGrad(
    GradOpDef,
    of=CSoftmaxWithCrossEntropy,
    reads="Softmax Label Loss@GRAD Softmax@GRAD?",
    grads_of="Logits",
    like="Softmax",
):
    r"""$$Logits@GRAD_j = Loss@GRAD (Softmax_j - [Label = j])$$ for the classes j of this rank; 0 where ignored.

    Where gradients of Softmax are given, a slot that Paddle's op lacks, what flows through the softmax is added. Then
    all ranks of the ring have to give them, since the sum over classes is one over ranks.
    """

    inplace = {"Softmax": "Logits@GRAD"}
    versions = OpVersion("c_softmax_with_cross_entropy_grad").checkpoint(
        "A gradient of Softmax.", ("new_input", "Softmax@GRAD", None)
    )
    expected_kernel_type = dtype_of("Softmax")
