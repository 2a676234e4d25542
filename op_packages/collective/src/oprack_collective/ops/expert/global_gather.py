"""global_gather: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, Output

from oprack_collective.ops.expert._family import ExpertRows, way_back


class GlobalGather(ExpertRows, type="global_gather"):
    r"""$$Out = [X_{0, e_0}, X_{0, e_1}, \dots, X_{1, e_0}, X_{1, e_1}, \dots]$$

    The way back of global_scatter: X has what this rank's experts made of the rows of all ranks, and Out the
    rows that came from this rank.
    """

    Out = Output("[sum of local_count, width].")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return way_back("global_scatter", fwd)
