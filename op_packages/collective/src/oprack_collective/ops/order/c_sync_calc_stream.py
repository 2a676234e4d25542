"""c_sync_calc_stream: all of the op but its kernel."""

from __future__ import annotations

from oprack_collective.ops._like import Like


class CSyncCalcStream(Like, type="c_sync_calc_stream"):
    r"""$$Out = X$$. In Paddle the host waits for the stream of computation; here ops end before the next one starts."""
