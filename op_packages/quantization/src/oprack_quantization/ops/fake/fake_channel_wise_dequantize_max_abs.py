"""fake_channel_wise_dequantize_max_abs: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, OpVersion, Output, empty_grad
from oprack.op.families import like

from oprack_quantization.ops._rules import channels


class FakeChannelWiseDequantizeMaxAbs(OpDef, type="fake_channel_wise_dequantize_max_abs"):
    r"""$$Out_c = X_c \cdot Scales[0]_c / B_0 \quad\text{or}\quad X_c \cdot Scales[0]_c\,Scales[1] / (B_0 B_1)$$

    with $B_i = 2^{quant\_bits_i - 1} - 1$. Channels lie along `quant_axis`; with two scales, those of the weight and
    of the input of a product, along axis `x_num_col_dims`.
    """

    X = Input("Tensor of rank 1 or more: integers, as floats.")
    Scales = Input("One or two: [C], and [1].", duplicable=True)
    Out = Output("Shape and LoD of X.")
    quant_bits = Attr([8], "Bits of the integers, one number for each of Scales.")
    quant_axis = Attr(0, "The axis of the channels: 0 or 1.").in_set({0, 1})
    x_num_col_dims = Attr(1, "With two scales, the axis of the channels.").check(lambda v: v > 0, "an axis above 0")
    make_grad = empty_grad
    versions = (
        OpVersion("fake_channel_wise_dequantize_max_abs")
        .checkpoint("Channels along another axis.", ("new_attr", "quant_axis", 0))
        .checkpoint("Channels of a product.", ("new_attr", "x_num_col_dims", 1))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, count, bits = ctx.dim("X"), ctx.input_count("Scales"), ctx.attr("quant_bits")
        ctx.require(count in (1, 2), f"{count} tensors are given as Scales; expected one, or two")
        ctx.require(
            len(bits) >= count,
            f"quant_bits is {list(bits)}; expected a number for each of the {count} tensors of Scales",
        )
        if count == 1:
            size = channels(ctx)
        else:
            axis = ctx.axis("X", "x_num_col_dims")
            size = dims[axis]
            ctx.require_dims("Scales", (1,), 1, why="one number")
        ctx.require_dims("Scales", (size,), why=f"the channels of X {list(dims)}")
        like(ctx, [("Out", "X")])
