"""sampling_id: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad

from oprack_random.ops._draw_like import SEED


class SamplingId(OpDef, type="sampling_id"):
    r"""$$Out_i = \min \{k : r_i < \sum_{j \le k} X_{i,j}\}$$ the last class when there is none, with
    $r_i \sim U[min, max)$."""

    X = Input("[n, k] probabilities, each row adds up to 1.")
    Out = Output("int64 [n]")
    min = Attr(0.0, "Lower bound of what is drawn.")
    max = Attr(1.0, "Upper bound of what is drawn.")
    seed = SEED
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, classes = ctx.require_rank("X", 2)
        ctx.require(classes != 0, f"X has shape {[rows, classes]}; expected one class at least")
        low, high = ctx.attr("min"), ctx.attr("max")
        ctx.require(low <= high, f"min is {low} and max {high}; expected min <= max")
        ctx.set_dim("Out", (rows,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")
