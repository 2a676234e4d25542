"""less_equal: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._family import Compare, force_cpu_checkpoint


class LessEqual(Compare, type="less_equal"):
    r"""$$Out = [X \le Y]$$"""

    versions = force_cpu_checkpoint("less_equal")
