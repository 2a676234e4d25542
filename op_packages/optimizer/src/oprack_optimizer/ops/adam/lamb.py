"""lamb: all of the op but its kernels."""

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
    SKIP,
    infer_dtypes,
    infer_like,
)

_UPDATES = {
    "Param": "ParamOut",
    "Moment1": "Moment1Out",
    "Moment2": "Moment2Out",
    "Beta1Pow": "Beta1PowOut",
    "Beta2Pow": "Beta2PowOut",
    "MasterParam": "MasterParamOut",
}


class Lamb(OpDef, type="lamb"):
    r"""With adam's moments,
    $$u = \frac{m_1 / (1 - Beta1Pow)}{\sqrt{m_2 / (1 - Beta2Pow)} + epsilon} + weight\_decay \cdot Param$$:
    $$ParamOut = Param - LearningRate \cdot r \cdot u$$ with $$r = \|Param\| / \|u\|$$ (1 when either is 0, or without
    decay unless always_adapt)"""

    Param = PARAM
    Grad = GRAD
    LearningRate = LEARNING_RATE
    Moment1 = Input("Mean of the gradients, shape of Param.")
    Moment2 = Input("Mean of their squares, shape of Param.")
    Beta1Pow = Input("Power of beta1 for this step; starts at beta1.")
    Beta2Pow = Input("Power of beta2 for this step; starts at beta2.")
    MasterParam = MASTER
    SkipUpdate = SKIP
    ParamOut = PARAM_OUT
    Moment1Out = Output("Updated Moment1.")
    Moment2Out = Output("Updated Moment2.")
    Beta1PowOut = Output("Beta1Pow for the next step.", dispensable=True)
    Beta2PowOut = Output("Beta2Pow for the next step.", dispensable=True)
    MasterParamOut = MASTER_OUT
    weight_decay = Attr(REQUIRED, "Weight decay.", type=AttrType.FLOAT)
    beta1 = Attr(0.9, "Share of Moment1 that is kept.").between(0.0, 1.0)
    beta2 = Attr(0.999, "Share of Moment2 that is kept.").between(0.0, 1.0)
    epsilon = Attr(1e-6, "Keeps the divisor from 0.")
    always_adapt = Attr(False, "Scale the step even without weight decay.")
    multi_precision = MULTI_PRECISION
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_shape = infer_like(_UPDATES)
    infer_var_type = infer_dtypes(_UPDATES)
    versions = OpVersion("lamb").checkpoint(
        "the op updates the powers itself", ("new_output", "Beta1PowOut", None), ("new_output", "Beta2PowOut", None)
    )
