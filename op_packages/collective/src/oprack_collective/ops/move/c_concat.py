"""c_concat: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output

from oprack_collective.ops._attrs import OF_MODEL_PARALLEL, ON_CALC_STREAM, RING_ID

_SHARED = ("nranks", "rank", "ring_id", "use_calc_stream", "use_model_parallel")


class CConcat(OpDef, type="c_concat"):
    r"""$$Out = [X_0, X_1, \dots]$$ along the last dim: the columns of all ranks of the ring, side by side."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    rank = Attr(0, "This rank in the ring.")
    nranks = Attr(1, "Number of ranks of the ring.")
    ring_id = RING_ID
    use_calc_stream = ON_CALC_STREAM
    use_model_parallel = OF_MODEL_PARALLEL

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(bool(dims), "X is 0-D; expected a last dim along which ranks are joined")
        ctx.set_dim("Out", (*dims[:-1], dims[-1] * ctx.attr("nranks") if dims[-1] >= 0 else -1))

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in _SHARED}
        return GradOp("c_split", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)
