"""index_put and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class IndexPut(OpDef, type="index_put"):
    r"""$$out = x,\quad out_{indices} = value$$ or, with accumulate, $out_{indices} \mathrel{+}= value$ for each place,
    also where it is named again. Indices broadcast with each other; truth values stand for the places where they hold.
    """

    x = Input("Tensor of rank 1 or more.")
    indices = Input("int32 or int64 tensors, or bool of the dims that they choose from.", duplicable=True)
    value = Input("A shape that broadcasts to that of what is chosen.")
    out = Output("Shape and LoD of x.")
    accumulate = Attr(False, "Add instead of replacing.")
    inplace = {"x": "out"}
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("x")
        count = ctx.input_count("indices")
        ctx.require(
            0 < count <= max(len(dims), 1),
            f"there are {count} indices for x of shape {list(dims)}; expected 1 to its rank",
        )
        ctx.set_dim("out", dims)
        ctx.share_lod("x", "out")


class IndexPutGrad(GradOpDef, of=IndexPut, reads="x indices value", shape_of="x value", grads_of="x value"):
    r"""$$x@GRAD = out@GRAD$$ with zeros at the places that were replaced, and $$value@GRAD = out@GRAD_{indices}$$
    summed where value was broadcast."""
