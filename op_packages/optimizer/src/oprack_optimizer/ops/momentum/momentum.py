"""momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import OpVersion
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import GRAD, LEARNING_RATE, MASTER, PARAM
from oprack_optimizer.ops.momentum._family import VELOCITY, MomentumBase


class Momentum(MomentumBase, type="momentum"):
    r"""$$g = rescale\_grad \cdot Grad + regularization\_coeff \cdot Param$$ (the last term with "l2_decay"),
    $$VelocityOut = mu \cdot Velocity + g$$, $$ParamOut = Param - LearningRate \cdot VelocityOut$$; with use_nesterov
    $$ParamOut = Param - LearningRate (g + mu \cdot VelocityOut)$$"""

    Param = PARAM
    Grad = GRAD
    Velocity = VELOCITY
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    versions = OpVersion("momentum").checkpoint(
        "weight decay, master weights and rescaling inside the op",
        ("new_input", "MasterParam", None),
        ("new_output", "MasterParamOut", None),
        ("new_attr", "regularization_method", ""),
        ("new_attr", "regularization_coeff", 0.0),
        ("new_attr", "multi_precision", False),
        ("new_attr", "rescale_grad", 1.0),
    )
    sbp = elementwise(("Param", "Grad", "Velocity"), ("ParamOut", "VelocityOut"))
