"""fused_elementwise_add: all of the op but its kernel."""

from __future__ import annotations

from oprack_fused.ops.onednn._elementwise import FusedElementwise


class FusedElementwiseAdd(FusedElementwise, type="fused_elementwise_add"):
    r"""$$Out = fused\_output\_scale \cdot f(X + Y)$$, f the activation, with dims of size 1 put in."""
