"""isfinite (Paddle 1.x): all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Input, Output

from oprack_math.ops.compare._finite import AnyTest


class Isfinite(AnyTest, type="isfinite"):
    r"""$$Out = \bigwedge [X \text{ is neither infinite nor NaN}]$$"""

    X = Input("Tensor of any shape.")
    Out = Output("bool [1]; true only where all elements are finite.")
