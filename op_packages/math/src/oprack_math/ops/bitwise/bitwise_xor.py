"""bitwise_xor: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.bitwise._family import Bitwise


class BitwiseXor(Bitwise, type="bitwise_xor"):
    r"""$$Out_i = X_i \oplus Y_i$$ bit by bit."""
