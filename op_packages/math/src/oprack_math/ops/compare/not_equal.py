"""not_equal: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._family import Compare, force_cpu_checkpoint


class NotEqual(Compare, type="not_equal"):
    r"""$$Out = [X \ne Y]$$ the contrary of `equal`, with its tolerance of 1e-8."""

    versions = force_cpu_checkpoint("not_equal")
