"""adamw: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, OpDef, Output, dtype_of, empty_grad
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


class AdamW(OpDef, type="adamw"):
    r"""As adam; with with_decay Param is first multiplied by
    $$1 - LearningRate \cdot lr\_ratio \cdot coeff$$ and the learning rate by lr_ratio"""

    Param = PARAM
    Grad = GRAD
    LearningRate = LEARNING_RATE
    Moment1 = Input("Mean of the gradients, shape of Param.")
    Moment2 = Input("Mean of their squares, shape of Param.")
    Beta1Pow = Input("Power of beta1 for this step; starts at beta1.")
    Beta2Pow = Input("Power of beta2 for this step; starts at beta2.")
    MasterParam = MASTER
    SkipUpdate = SKIP
    Beta1Tensor = Input("One element that overrides `beta1`.", dispensable=True)
    Beta2Tensor = Input("One element that overrides `beta2`.", dispensable=True)
    EpsilonTensor = Input("One element that overrides `epsilon`.", dispensable=True)
    ParamOut = PARAM_OUT
    Moment1Out = Output("Updated Moment1.")
    Moment2Out = Output("Updated Moment2.")
    Beta1PowOut = Output("Beta1Pow for the next step.")
    Beta2PowOut = Output("Beta2Pow for the next step.")
    MasterParamOut = MASTER_OUT
    beta1 = Attr(0.9, "Share of Moment1 that is kept.").between(0.0, 1.0)
    beta2 = Attr(0.999, "Share of Moment2 that is kept.").between(0.0, 1.0)
    epsilon = Attr(1e-8, "Keeps the divisor from 0.")
    lr_ratio = Attr(1.0, "Factor of the learning rate.")
    coeff = Attr(0.01, "Weight decay.")
    with_decay = Attr(False, "Decay; otherwise the op is adam.")
    lazy_mode = Attr(False, "Update only the rows of a SelectedRows gradient.")
    min_row_size_to_use_multithread = Attr(1000, "Kept for old programs.", type=AttrType.LONG)
    multi_precision = MULTI_PRECISION
    use_global_beta_pow = Attr(False, "Another op updates the powers.")
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_shape = infer_like(_UPDATES)
    infer_var_type = infer_dtypes(_UPDATES)
