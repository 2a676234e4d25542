"""What definitions of momentum and its relatives share, in the order of their OpProtos."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, Output
from oprack.types import AttrType

from oprack_optimizer.ops._update import MASTER_OUT, MULTI_PRECISION, PARAM_OUT, UpdateRule

VELOCITY = Input("Running sum of gradients, shape of Param.")
MU = Attr(REQUIRED, "Share of the old velocity that is kept.", type=AttrType.FLOAT)
NESTEROV = Attr(False, "Look ahead by one step.")
RESCALE_GRAD = Attr(1.0, "Factor of Grad.")
MOMENTUM_UPDATES = {"Param": "ParamOut", "Velocity": "VelocityOut", "MasterParam": "MasterParamOut"}


class MomentumBase(UpdateRule):
    """Outputs and attributes of a rule for one parameter."""

    ParamOut = PARAM_OUT
    VelocityOut = Output("Updated Velocity.")
    MasterParamOut = MASTER_OUT
    mu = MU
    use_nesterov = NESTEROV
    regularization_method = Attr("", "l2_decay, or empty for none.").in_set(("", "l2_decay"))
    regularization_coeff = Attr(0.0, "Weight of the decay.")
    multi_precision = MULTI_PRECISION
    rescale_grad = RESCALE_GRAD
    inplace = MOMENTUM_UPDATES


class ManyParametersRule(UpdateRule):
    """Slots of a rule for many parameters at once."""

    Param = Input("Parameters.", duplicable=True)
    Grad = Input("Their gradients.", duplicable=True)
    Velocity = Input("Their velocities.", duplicable=True)
    LearningRate = Input("One learning rate, or one per parameter.", duplicable=True)
    MasterParam = Input("float32 copies of 16-bit parameters.", duplicable=True, dispensable=True)
    ParamOut = Output("Updated parameters.", duplicable=True)
    VelocityOut = Output("Updated velocities.", duplicable=True)
    MasterParamOut = Output("Updated copies.", duplicable=True, dispensable=True)
    mu = MU
    inplace = MOMENTUM_UPDATES
