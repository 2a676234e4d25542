"""range: all of the op but its kernel."""

from __future__ import annotations

import math

from oprack.op import InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad


class Range(OpDef, type="range"):
    r"""$$Out_i = Start + i \cdot Step$$ for all values before End."""

    Start = Input("One-element tensor.")
    End = Input("One-element tensor, not part of the result.")
    Step = Input("One-element tensor, not 0.")
    Out = Output("[ceil((End - Start) / Step)]")
    expected_kernel_type = dtype_of("Start")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        values = [ctx.scalar(slot) for slot in ("Start", "End", "Step")]
        if any(v is None for v in values):
            ctx.set_dim("Out", (-1,))
            return
        start, end, step = (v.item() for v in values)
        ctx.require(step != 0, "Step is 0; expected a step towards End")
        ctx.require(
            start == end or (end > start) == (step > 0),
            f"Start is {start}, End {end} and Step {step}; expected a Step whose sign leads from Start to End",
        )
        ctx.set_dim("Out", (math.ceil((end - start) / step),))
