"""bitwise_and: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.bitwise._family import Bitwise


class BitwiseAnd(Bitwise, type="bitwise_and"):
    r"""$$Out_i = X_i \mathbin{\&} Y_i$$ bit by bit."""
