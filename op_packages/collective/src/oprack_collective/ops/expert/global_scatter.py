"""global_scatter: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, Output

from oprack_collective.ops.expert._family import ExpertRows, way_back


class GlobalScatter(ExpertRows, type="global_scatter"):
    r"""$$Out = [X_{0, e_0}, X_{1, e_0}, \dots, X_{0, e_1}, X_{1, e_1}, \dots]$$

    X has this rank's rows for the experts e of rank 0, then of rank 1, and so on. Out has the rows of all ranks
    for this rank's first expert, then for its second, and so on.
    """

    Out = Output("[sum of global_count, width].")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return way_back("global_gather", fwd)
