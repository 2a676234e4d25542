"""c_split: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output

from oprack_collective.ops._attrs import OF_MODEL_PARALLEL, RING_ID, USE_CALC_STREAM

_SHARED = ("nranks", "rank", "ring_id", "use_calc_stream", "use_model_parallel")


class CSplit(OpDef, type="c_split"):
    r"""$$Out = X_{\dots, rank}$$: this rank's part of the last dim, the same size on each rank of the ring."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    rank = Attr(0, "This rank in the ring.")
    nranks = Attr(1, "Number of ranks of the ring.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = OF_MODEL_PARALLEL

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("X"), ctx.attr("nranks")
        fits = bool(dims) and (dims[-1] < 0 or dims[-1] % n == 0)
        ctx.require(fits, f"X has shape {list(dims)}; expected a last dim that {n} ranks can share")
        ctx.set_dim("Out", (*dims[:-1], dims[-1] // n if dims[-1] >= 0 else -1))

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in _SHARED}
        return GradOp("c_concat", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)
