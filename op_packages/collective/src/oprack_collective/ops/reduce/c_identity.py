"""c_identity: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp

from oprack_collective.ops._attrs import OF_MODEL_PARALLEL, ON_CALC_STREAM, RING_ID
from oprack_collective.ops._like import Like


class CIdentity(Like, type="c_identity"):
    r"""$$Out = X$$, a copy. Ranks compute parts of what follows, so X@GRAD is the sum of Out@GRAD over them."""

    ring_id = RING_ID
    use_calc_stream = ON_CALC_STREAM
    use_model_parallel = OF_MODEL_PARALLEL

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in ("ring_id", "use_calc_stream", "use_model_parallel")}
        return GradOp("c_allreduce_sum", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)
