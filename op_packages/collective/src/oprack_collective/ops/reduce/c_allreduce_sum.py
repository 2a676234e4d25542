"""c_allreduce_sum: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Input

from oprack_collective.ops._attrs import MODEL_PARALLEL, RING_ID, USE_CALC_STREAM
from oprack_collective.ops._like import Like


class CAllreduceSum(Like, type="c_allreduce_sum"):
    r"""$$Out = \sum_r X_r$$ over the ranks r of the ring, on each; of SelectedRows the rows of all ranks."""

    Cond = Input("Paddle: whether to reduce; not read.", dispensable=True)
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = MODEL_PARALLEL
    inplace = {"X": "Out"}
