"""merged_momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.types import AttrType

from oprack_optimizer.ops._update import MULTI_PRECISION
from oprack_optimizer.ops.momentum._family import NESTEROV, RESCALE_GRAD, ManyParametersRule


class MergedMomentum(ManyParametersRule, type="merged_momentum"):
    r"""$$VelocityOut_i = mu \cdot Velocity_i + g_i, \quad ParamOut_i = Param_i - LearningRate_i \cdot VelocityOut_i$$

    As momentum, for many parameters at once.
    """

    use_nesterov = NESTEROV
    regularization_method = Attr([], "l2_decay or empty, one per parameter.", type=AttrType.STRINGS)
    regularization_coeff = Attr([], "Weight of the decay, one per parameter.", type=AttrType.FLOATS)
    multi_precision = MULTI_PRECISION
    rescale_grad = RESCALE_GRAD
