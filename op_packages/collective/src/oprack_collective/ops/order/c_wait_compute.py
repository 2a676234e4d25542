"""c_wait_compute: all of the op but its kernel."""

from __future__ import annotations

from oprack_collective.ops._attrs import RING_ID
from oprack_collective.ops.order._many import Many


class CWaitCompute(Many, type="c_wait_compute"):
    r"""$$Out_i = X_i$$. In Paddle communication waits for computation; here ops end before the next one starts."""

    ring_id = RING_ID
