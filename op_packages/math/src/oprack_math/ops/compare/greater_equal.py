"""greater_equal: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._family import Compare, force_cpu_checkpoint


class GreaterEqual(Compare, type="greater_equal"):
    r"""$$Out = [X \ge Y]$$"""

    versions = force_cpu_checkpoint("greater_equal")
