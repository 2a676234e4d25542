"""mean_iou (Paddle 1.x): all of the op but its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    KernelTypeContext,
    OpDef,
    Output,
    empty_grad,
)
from oprack.types import AttrType

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


class MeanIou(OpDef, type="mean_iou"):
    r"""$$OutMeanIou = \frac{1}{|C|} \sum_{c \in C} \frac{OutCorrect_c}{OutCorrect_c + OutWrong_c} + \sum InMeanIou$$

    over the classes C that occur, where a wrong element counts for both of its classes.
    """

    Predictions = Input("Predicted classes of any shape, int32 or int64.")
    Labels = Input("True classes, shape of Predictions.")
    InWrongs = Input("Counts [num_classes] to add to OutWrong.", duplicable=True, dispensable=True)
    InCorrects = Input("Counts [num_classes] to add to OutCorrect.", duplicable=True, dispensable=True)
    InMeanIou = Input("Means to add to OutMeanIou.", duplicable=True, dispensable=True)
    OutMeanIou = Output("float32 [1].")
    OutWrong = Output("Wrong elements per class, int32.")
    OutCorrect = Output("Right elements per class, int32.")
    num_classes = Attr(REQUIRED, "Classes.", type=AttrType.INT).greater_than(0)
    make_grad = empty_grad

    def expected_kernel_type(ctx: KernelTypeContext) -> OpKernelType:
        return ctx.kernel_type(dtype=ctx.dtype("Predictions"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Predictions", "Labels")
        ctx.set_dim("OutMeanIou", (1,))
        for slot in ("OutWrong", "OutCorrect"):
            ctx.set_dim(slot, (ctx.attr("num_classes"),))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("OutMeanIou", "float32")
        for slot in ("OutWrong", "OutCorrect"):
            ctx.set_dtype(slot, "int32")
