"""bitwise_left_shift: all of the op but its kernel."""

from __future__ import annotations

from oprack_math.ops.bitwise._family import Shift


class BitwiseLeftShift(Shift, type="bitwise_left_shift"):
    r"""$$Out_i = X_i \cdot 2^{Y_i}$$ cut to the bits of the dtype; 0 for a Y of at least their number."""
