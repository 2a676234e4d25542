"""adagrad: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, OpDef, Output, dtype_of, empty_grad

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

_UPDATES = {"Param": "ParamOut", "Moment": "MomentOut", "MasterParam": "MasterParamOut"}


class Adagrad(OpDef, type="adagrad"):
    r"""$$MomentOut = Moment + Grad^2$$,
    $$ParamOut = Param - LearningRate \cdot Grad / (\sqrt{MomentOut} + epsilon)$$"""

    Param = PARAM
    Grad = GRAD
    Moment = Input("Sum of squared gradients, shape of Param.")
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    MasterParamOut = MASTER_OUT
    epsilon = Attr(1e-6, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_shape = infer_like(_UPDATES)
    infer_var_type = infer_dtypes(_UPDATES)
