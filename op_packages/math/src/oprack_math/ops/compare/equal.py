"""equal: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._family import Compare, force_cpu_checkpoint


class Equal(Compare, type="equal"):
    r"""$$Out = [X = Y]$$ float32 and float64 count as equal when they differ by less than 1e-8."""

    versions = force_cpu_checkpoint("equal")
