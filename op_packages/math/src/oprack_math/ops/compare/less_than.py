"""less_than: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._family import Compare, force_cpu_checkpoint


class LessThan(Compare, type="less_than"):
    r"""$$Out = [X < Y]$$"""

    versions = force_cpu_checkpoint("less_than")
