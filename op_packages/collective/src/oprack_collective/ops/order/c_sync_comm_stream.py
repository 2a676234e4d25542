"""c_sync_comm_stream: all of the op but its kernel."""

from __future__ import annotations

from oprack_collective.ops._attrs import RING_ID
from oprack_collective.ops.order._many import Many


class CSyncCommStream(Many, type="c_sync_comm_stream"):
    r"""$$Out_i = X_i$$. In Paddle the host waits for communication; here ops end before the next one starts."""

    ring_id = RING_ID
