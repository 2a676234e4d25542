"""momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, OpVersion, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_optimizer.ops._update import (
    GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM,
    PARAM_OUT,
    infer_dtypes,
    infer_like,
)

_UPDATES = {"Param": "ParamOut", "Velocity": "VelocityOut", "MasterParam": "MasterParamOut"}


class Momentum(OpDef, type="momentum"):
    r"""$$g = rescale\_grad \cdot Grad + regularization\_coeff \cdot Param$$ (the last term with "l2_decay"),
    $$VelocityOut = mu \cdot Velocity + g$$, $$ParamOut = Param - LearningRate \cdot VelocityOut$$; with use_nesterov
    $$ParamOut = Param - LearningRate (g + mu \cdot VelocityOut)$$"""

    Param = PARAM
    Grad = GRAD
    Velocity = Input("Running sum of gradients, shape of Param.")
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    VelocityOut = Output("Updated Velocity.")
    MasterParamOut = MASTER_OUT
    mu = Attr(REQUIRED, "Share of the old velocity that is kept.", type=AttrType.FLOAT)
    use_nesterov = Attr(False, "Look ahead by one step.")
    regularization_method = Attr("", "l2_decay, or empty for none.").in_set(("", "l2_decay"))
    regularization_coeff = Attr(0.0, "Weight of the decay.")
    multi_precision = MULTI_PRECISION
    rescale_grad = Attr(1.0, "Factor of Grad.")
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_shape = infer_like(_UPDATES)
    infer_var_type = infer_dtypes(_UPDATES)
    versions = OpVersion("momentum").checkpoint(
        "weight decay, master weights and rescaling inside the op",
        ("new_input", "MasterParam", None),
        ("new_output", "MasterParamOut", None),
        ("new_attr", "regularization_method", ""),
        ("new_attr", "regularization_coeff", 0.0),
        ("new_attr", "multi_precision", False),
        ("new_attr", "rescale_grad", 1.0),
    )
