"""chunk_eval: all of the op but its kernel."""

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

_RATES = ("Precision", "Recall", "F1-Score")
_COUNTS = ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks")


class ChunkEval(OpDef, type="chunk_eval"):
    r"""$$Precision = \frac{correct}{inferred}, \; Recall = \frac{correct}{labelled}, \; F1 = \frac{2 P R}{P + R}$$

    of chunks in tagged sequences: one is correct when its begin, end and type agree. Each is 0 where it would be 0 / 0.

    A tag is type * tags of the scheme + position in the chunk; the largest one is "outside". Tags of the schemes: IOB
    begin, inside; IOE inside, end; IOBES begin, inside, end, single; plain one only.
    """

    Inference = Input("Predicted tags: [N, 1] with LoD, or [B, T] with SeqLength.")
    Label = Input("True tags, as Inference.")
    SeqLength = Input("Length of each sequence [B].", dispensable=True)
    Precision = Output("Right chunks / predicted chunks [1].")
    Recall = Output("Right chunks / true chunks [1].")
    F1_Score = Output("Harmonic mean of both [1].", name="F1-Score")
    NumInferChunks = Output("Predicted chunks, int64 [1].")
    NumLabelChunks = Output("True chunks, int64 [1].")
    NumCorrectChunks = Output("Right chunks, int64 [1].")
    num_chunk_types = Attr(REQUIRED, "Types of chunks.", type=AttrType.INT).greater_than(0)
    chunk_scheme = Attr("IOB", "IOB, IOE, IOBES or plain.").in_set(("IOB", "IOE", "IOBES", "plain"))
    excluded_chunk_types = Attr([], "Types that do not count.", type=AttrType.INTS)
    make_grad = empty_grad

    def expected_kernel_type(ctx: KernelTypeContext) -> OpKernelType:
        return ctx.kernel_type(dtype="float32")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Inference", "Label")
        for slot in (*_RATES, *_COUNTS):
            ctx.set_dim(slot, (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in _RATES:
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "float32")
        for slot in _COUNTS:
            if ctx.has_output(slot):
                ctx.set_dtype(slot, "int64")
