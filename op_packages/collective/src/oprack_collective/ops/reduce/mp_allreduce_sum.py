"""mp_allreduce_sum: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM
from oprack_collective.ops._like import Like


class MpAllreduceSum(Like, type="mp_allreduce_sum"):
    r"""$$Out = \sum_r X_r$$ over the ranks r of the ring. What follows is the same on each, so X@GRAD is Out@GRAD."""

    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    inplace = {"X": "Out"}

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in ("ring_id", "use_calc_stream")}
        return GradOp("c_identity", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)
