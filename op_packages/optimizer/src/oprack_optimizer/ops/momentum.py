"""Definitions of gradient descent with momentum."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpVersion, Output
from oprack.op.sbp import elementwise
from oprack.types import AttrType

from oprack_optimizer.ops._update import (
    GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM,
    PARAM_OUT,
    UpdateRule,
)

# What definitions of momentum and its relatives share, in the order of their OpProtos.
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


class LarsMomentum(ManyParametersRule, type="lars_momentum"):
    r"""Momentum with a learning rate per parameter:
    $$lr = LearningRate \cdot \frac{lars\_coeff \|Param\|}{\|Grad\| + d \|Param\| + epsilon}$$ with weight decay d,
    $$VelocityOut = mu \cdot Velocity + lr (Grad + d \cdot Param)$$, $$ParamOut = Param - VelocityOut$$"""

    LearningRate = Input("Their learning rates.", duplicable=True)
    lars_coeff = Attr(0.001, "Trust in the norm of a parameter.")
    lars_weight_decay = Attr([0.0005], "Weight decay: one number, or one per parameter.")
    epsilon = Attr(0.0, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    rescale_grad = RESCALE_GRAD


class MergedMomentum(ManyParametersRule, type="merged_momentum"):
    r"""$$VelocityOut_i = mu \cdot Velocity_i + g_i, \quad ParamOut_i = Param_i - LearningRate_i \cdot VelocityOut_i$$

    As momentum, for many parameters at once.
    """

    use_nesterov = NESTEROV
    regularization_method = Attr([], "l2_decay or empty, one per parameter.", type=AttrType.STRINGS)
    regularization_coeff = Attr([], "Weight of the decay, one per parameter.", type=AttrType.FLOATS)
    multi_precision = MULTI_PRECISION
    rescale_grad = RESCALE_GRAD


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


class SparseMomentum(MomentumBase, type="sparse_momentum"):
    r"""$$g_r = \sum_{i : Index_i = r} Grad_i, \; VelocityOut = mu \cdot Velocity + g, \; ParamOut = Param -
    LearningRate \cdot VelocityOut$$

    As momentum, for the rows (or columns, with axis 1) of Param that Index lists; all others have a gradient of 0.
    """

    Param = PARAM
    Grad = Input("Gradients of the listed rows or columns.")
    Velocity = VELOCITY
    Index = Input("Rows or columns that Grad holds [n].")
    Axis = Input("One int that overrides `axis`.", dispensable=True)
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    axis = Attr(0, "0: Index lists rows. 1: columns.").in_set((0, 1))

    def infer_shape(ctx: InferShapeContext) -> None:
        param, index = ctx.dim("Param"), ctx.dim("Index")
        ctx.require(
            len(index) in (1, 2), f"Index has shape {list(index)}; expected [n], the rows or columns that Grad holds"
        )
        ctx.require(
            len(ctx.dim("Grad")) == len(param), f"Grad has shape {list(ctx.dim('Grad'))}; expected {len(param)} dims"
        )
        for x, out in MOMENTUM_UPDATES.items():
            if ctx.has_input(x):
                ctx.set_dim(out, ctx.dim(x))
