"""arg_min: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.reduce._arg_extremum import ArgExtremum


class ArgMin(ArgExtremum, type="arg_min"):
    r"""$$Out = \operatorname{argmin}_{axis} X$$ the first of equal ones."""
