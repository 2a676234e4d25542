"""fused_elementwise_mul: all of the op but its kernel."""

from __future__ import annotations

from oprack_fused.ops.onednn._elementwise import FusedElementwise


class FusedElementwiseMul(FusedElementwise, type="fused_elementwise_mul"):
    r"""$$Out = fused\_output\_scale \cdot f(X \cdot Y)$$, f the activation, with dims of size 1 put in."""
