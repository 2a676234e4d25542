"""nanmedian and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_math.ops._reduce import reduced_dims


class Nanmedian(OpDef, type="nanmedian"):
    r"""$$Out = (X_{(\lfloor (n+1)/2 \rfloor)} + X_{(\lfloor n/2 \rfloor + 1)}) / 2$$ of the n elements along some dims
    that are not NaN; NaN where all are. Integers are cut towards zero."""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without the reduced dims; no LoD.")
    MedianIndex = Output(
        "int64, Out's shape and [2]: the places of both middle elements among those reduced, -1 where all are NaN.",
        intermediate=True,
        extra=True,
    )
    axis = Attr([], "Dims to reduce; none means all.", type=AttrType.INTS)
    keepdim = Attr(True, "Keep reduced dims, with size 1.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = reduced_dims(ctx, ctx.dim("X"), ctx.attr("axis"), ctx.attr("keepdim"), False)
        ctx.set_dim("Out", dims)
        ctx.set_dim("MedianIndex", (*dims, 2))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("MedianIndex", "int64")


class NanmedianGrad(GradOpDef, of=Nanmedian, reads="X MedianIndex Out@GRAD", shape_of="X"):
    r"""$$X@GRAD = Out@GRAD / 2$$ at each of both middle elements, all of it where they are one; 0 elsewhere."""

    expected_kernel_type = dtype_of("Out@GRAD")
