"""bitwise_right_shift: all of the op but its kernel."""

from __future__ import annotations

from oprack_math.ops.bitwise._family import Shift


class BitwiseRightShift(Shift, type="bitwise_right_shift"):
    r"""$$Out_i = \lfloor X_i / 2^{Y_i} \rfloor$$ or, without `is_arithmetic`, with zeros for the bits that come in."""
