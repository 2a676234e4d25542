"""c_allreduce_prod: all of the op but its kernel."""

from __future__ import annotations

from oprack_collective.ops._attrs import MODEL_PARALLEL, RING_ID, USE_CALC_STREAM
from oprack_collective.ops._like import Like


class CAllreduceProd(Like, type="c_allreduce_prod"):
    r"""$$Out = \prod_r X_r$$ over the ranks r of the ring, on each of them."""

    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = MODEL_PARALLEL
    inplace = {"X": "Out"}
