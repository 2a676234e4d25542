"""reduce_mean and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef
from oprack.op.sbp import reduction

from oprack_math.ops._reduce import Reduce, linear_double_grad


class ReduceMean(Reduce, type="reduce_mean"):
    r"""$$Out = \frac1n \sum_{dim} X$$ Integers are cut towards zero; the mean of booleans is whether any is true."""

    sbp = reduction("mean")


class ReduceMeanGrad(GradOpDef, of=ReduceMean, shape_of="X"):
    r"""$$X@GRAD = Out@GRAD / n$$"""

    make_grad = linear_double_grad("reduce_mean")
