"""check_numerics: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class CheckNumerics(OpDef, type="check_numerics"):
    r"""$$stats = (|\{x : x \ne x\}|, |\{x : |x| = \infty\}|, |\{x : x = 0\}|), \; values = (\max x, \min x,
    \operatorname{mean} x)$$

    NaN is left out of the maximum and the minimum. With check_nan_inf_level 0 a NaN or an infinity is an error; with a
    greater level it is only counted.
    """

    tensor = Input("Tensor of any shape; for complex numbers their magnitudes count.")
    stats = Output("int64 [3]: how many elements are NaN, infinite and zero.")
    values = Output("float32 [3]: the greatest, the least and the mean element.")
    op_type_ = Attr("", "The op whose result it is, for the message.")
    var_name = Attr("", "The variable, for the message.")
    check_nan_inf_level = Attr(0, "0: stop at a NaN or an infinity.")
    stack_height_limit = Attr(-1, "Paddle: lines of the call stack in the message.")
    output_dir = Attr("", "Paddle: where to log; nothing is written here.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("stats", (3,))
        ctx.set_dim("values", (3,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("stats", "int64")
        ctx.set_dtype("values", "float32")
