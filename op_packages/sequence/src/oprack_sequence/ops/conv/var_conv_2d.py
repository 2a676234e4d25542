"""var_conv_2d and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class VarConv2d(OpDef, type="var_conv_2d"):
    r"""$$Out^{(b)}_{o,y,x} = \sum_{c,i,j} W_{o, (c K_h + i) K_w + j} X^{(b)}_{c, y s_h + i - \lfloor K_h / 2 \rfloor,
    x s_w + j - \lfloor K_w / 2 \rfloor}$$, 0 outside of an image

    A convolution of images that differ in size: image b has as many rows and columns as sequence b of ROW and COLUMN.
    """

    X = Input("Images, one after the other, [elements, 1] with LoD.")
    ROW = Input("Its LoD gives the rows of each image.")
    COLUMN = Input("Its LoD gives the columns of each image.")
    W = Input("[OutputChannel, InputChannel x KernelH x KernelW].")
    Out = Output("[elements, 1]; a sequence is one image.")
    Col = Output(
        "The windows of each image [InputChannel x KernelH x KernelW, places], one after the other.", stop_gradient=True
    )
    InputChannel = Attr(1, "Channels of X.").greater_than(0)
    OutputChannel = Attr(1, "Channels of Out.").greater_than(0)
    StrideH = Attr(1, "Rows from one window to the next.").greater_than(0)
    StrideW = Attr(1, "Columns from one window to the next.").greater_than(0)
    KernelH = Attr(1, "Rows of a window.").greater_than(0)
    KernelW = Attr(1, "Columns of a window.").greater_than(0)

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("X", "ROW", "COLUMN"):
            ctx.require_lod(slot)
        ctx.require_dims("X", (-1, 1), why="one element a row")
        window = ctx.attr("InputChannel") * ctx.attr("KernelH") * ctx.attr("KernelW")
        ctx.require_dims("W", (ctx.attr("OutputChannel"), window), why="a filter for each channel of Out")
        for slot in ("Out", "Col"):
            ctx.set_dim(slot, (-1, 1))
            ctx.set_lod_level(slot, 1)


class VarConv2dGrad(
    GradOpDef, of=VarConv2d, reads="X ROW COLUMN W Out Col Out@GRAD", shape_of="Out ROW COLUMN", grads_of="X W"
):
    r"""$$W@GRAD = \sum_b Out@GRAD^{(b)} Col^{(b)\top}$$, and X@GRAD sums $$W^\top Out@GRAD^{(b)}$$ over the windows"""
