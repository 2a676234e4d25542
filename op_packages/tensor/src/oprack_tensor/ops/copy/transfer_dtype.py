"""transfer_dtype: all of the op but its kernels."""

from __future__ import annotations

from oprack_tensor.ops.copy._convert import Convert


class TransferDtype(Convert, type="transfer_dtype"):
    r"""$$Out_i = \operatorname{out\_dtype}(X_i)$$ as cast does it.

    Paddle's executor writes it between two kernels.
    """
