"""arg_max: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.reduce._arg_extremum import ArgExtremum


class ArgMax(ArgExtremum, type="arg_max"):
    r"""$$Out = \operatorname{argmax}_{axis} X$$ the first of equal ones."""
