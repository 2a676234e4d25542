"""Definitions of averages of parameters."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

_UPDATES = {
    "in_sum_1": "out_sum_1",
    "in_sum_2": "out_sum_2",
    "in_sum_3": "out_sum_3",
    "in_num_accumulates": "out_num_accumulates",
    "in_old_num_accumulates": "out_old_num_accumulates",
    "in_num_updates": "out_num_updates",
}


class AverageAccumulates(OpDef, type="average_accumulates"):
    r"""$$\overline{param} = \frac{out\_sum_1 + out\_sum_2 + out\_sum_3}{out\_num\_accumulates +
    out\_old\_num\_accumulates}$$

    is what ModelAverage takes from these sums of a parameter over the last steps: sum_1 takes each step, is moved to
    sum_2 every 16384 steps for precision, and both to sum_3 when the window is full.
    """

    param = Input("Parameter of this step.")
    in_sum_1 = Input("Sum of the latest steps, shape of param.")
    in_sum_2 = Input("Sum of the steps before, shape of param.")
    in_sum_3 = Input("Sum of the last full window, shape of param.")
    in_num_accumulates = Input("Steps in sum_1 and sum_2, int64.")
    in_old_num_accumulates = Input("Steps in sum_3, int64.")
    in_num_updates = Input("Steps since the start, int64.")
    out_sum_1 = Output("Updated in_sum_1.")
    out_sum_2 = Output("Updated in_sum_2.")
    out_sum_3 = Output("Updated in_sum_3.")
    out_num_accumulates = Output("Updated in_num_accumulates.")
    out_old_num_accumulates = Output("Updated in_old_num_accumulates.")
    out_num_updates = Output("Updated in_num_updates.")
    average_window = Attr(0.0, "Window as a share of all steps.")
    max_average_window = Attr(2**63 - 1, "Largest window.", type=AttrType.LONG)
    min_average_window = Attr(10000, "Smallest window.", type=AttrType.LONG)
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("param")

    def infer_shape(ctx: InferShapeContext) -> None:
        for x, out in _UPDATES.items():
            ctx.set_dim(out, ctx.dim(x))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for x, out in _UPDATES.items():
            if ctx.has_output(out):
                ctx.set_dtype(out, ctx.dtype(x))
