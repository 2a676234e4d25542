"""cummin and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, dtype_of

from oprack_math.ops.reduce._running import RunningExtremum


class Cummin(RunningExtremum, type="cummin"):
    r"""$$out_i = \min_{j \le i} x_j$$ From the first NaN on it is NaN."""


class CumminGrad(GradOpDef, of=Cummin, reads="x indices out@GRAD"):
    r"""$$x@GRAD_j = \sum_{i: indices_i = j} out@GRAD_i$$"""

    expected_kernel_type = dtype_of("x")
