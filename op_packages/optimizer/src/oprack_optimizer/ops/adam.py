"""Definitions of adam and the rules derived from it."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpVersion, Output
from oprack.op.sbp import elementwise
from oprack.types import AttrType

from oprack_optimizer.ops._update import (
    DENSE_GRAD,
    GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM,
    PARAM_OUT,
    SKIP,
    UpdateRule,
)

# What definitions of adam and its relatives share, in the order of their OpProtos.
BETA_1 = Attr(0.9, "Share of Moment1 that is kept.").between(0.0, 1.0)

BETA_2 = Attr(0.999, "Share of Moment2 that is kept.").between(0.0, 1.0)

LAZY_MODE = Attr(False, "Update only the rows of a SelectedRows gradient.")

MULTITHREAD_ROWS = Attr(1000, "Kept for old programs.", type=AttrType.LONG)

GLOBAL_BETA_POW = Attr(False, "Another op updates the powers.")

ADAM_UPDATES = {
    "Param": "ParamOut",
    "Moment1": "Moment1Out",
    "Moment2": "Moment2Out",
    "Beta1Pow": "Beta1PowOut",
    "Beta2Pow": "Beta2PowOut",
    "MasterParam": "MasterParamOut",
}


class MomentsRule(UpdateRule):
    """A rule with adam's state: two moments, and the powers of the shares that they keep."""

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
    Beta1PowOut = Output("Beta1Pow for the next step.")
    Beta2PowOut = Output("Beta2Pow for the next step.")
    MasterParamOut = MASTER_OUT
    inplace = ADAM_UPDATES


class AdamBase(MomentsRule):
    """adam and adamw, whose shares and epsilon may be tensors."""

    Beta1Tensor = Input("One element that overrides `beta1`.", dispensable=True)
    Beta2Tensor = Input("One element that overrides `beta2`.", dispensable=True)
    EpsilonTensor = Input("One element that overrides `epsilon`.", dispensable=True)
    beta1 = BETA_1
    beta2 = BETA_2
    epsilon = Attr(1e-8, "Keeps the divisor from 0.")


class Adam(AdamBase, type="adam"):
    r"""$$m_1 = beta1 \cdot Moment1 + (1 - beta1) Grad$$, $$m_2 = beta2 \cdot Moment2 + (1 - beta2) Grad^2$$,
    $$ParamOut = Param - LearningRate \frac{\sqrt{1 - Beta2Pow}}{1 - Beta1Pow}
    \cdot \frac{m_1}{\sqrt{m_2} + epsilon \sqrt{1 - Beta2Pow}}$$; then the powers are multiplied by their betas.

    A SelectedRows gradient counts as 0 in the other rows; with lazy_mode those rows are left alone. There Paddle 2.6.2
    on CPU takes the powers of the next step when they are updated in place; here the formula holds."""

    lazy_mode = LAZY_MODE
    min_row_size_to_use_multithread = MULTITHREAD_ROWS
    multi_precision = MULTI_PRECISION
    use_global_beta_pow = GLOBAL_BETA_POW
    sbp = elementwise(("Param", "Grad", "Moment1", "Moment2"), ("ParamOut", "Moment1Out", "Moment2Out"))


class Adamax(UpdateRule, type="adamax"):
    r"""$$MomentOut = beta1 \cdot Moment + (1 - beta1) Grad$$,
    $$InfNormOut = \max(|Grad|, beta2 \cdot InfNorm + epsilon)$$,
    $$ParamOut = Param - \frac{LearningRate}{1 - Beta1Pow} \cdot MomentOut / InfNormOut$$"""

    Param = PARAM
    Grad = DENSE_GRAD
    LearningRate = LEARNING_RATE
    Moment = Input("Mean of the gradients, shape of Param.")
    InfNorm = Input("Decayed maximum of the gradients, shape of Param.")
    Beta1Pow = Input("Power of beta1 for this step; another op updates it.")
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    InfNormOut = Output("Updated InfNorm.")
    MasterParamOut = MASTER_OUT
    beta1 = Attr(0.9, "Share of Moment that is kept.")
    beta2 = Attr(0.999, "Share of InfNorm that is kept.")
    epsilon = Attr(1e-8, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    inplace = {"Param": "ParamOut", "Moment": "MomentOut", "InfNorm": "InfNormOut", "MasterParam": "MasterParamOut"}
    sbp = elementwise(("Param", "Grad", "Moment", "InfNorm"), ("ParamOut", "MomentOut", "InfNormOut"))


class AdamW(AdamBase, type="adamw"):
    r"""As adam; with with_decay Param is first multiplied by
    $$1 - LearningRate \cdot lr\_ratio \cdot coeff$$ and the learning rate by lr_ratio"""

    lr_ratio = Attr(1.0, "Factor of the learning rate.")
    coeff = Attr(0.01, "Weight decay.")
    with_decay = Attr(False, "Decay; otherwise the op is adam.")
    lazy_mode = LAZY_MODE
    min_row_size_to_use_multithread = MULTITHREAD_ROWS
    multi_precision = MULTI_PRECISION
    use_global_beta_pow = GLOBAL_BETA_POW
    sbp = elementwise(("Param", "Grad", "Moment1", "Moment2"), ("ParamOut", "Moment1Out", "Moment2Out"))


class Lamb(MomentsRule, type="lamb"):
    r"""With adam's moments,
    $$u = \frac{m_1 / (1 - Beta1Pow)}{\sqrt{m_2 / (1 - Beta2Pow)} + epsilon} + weight\_decay \cdot Param$$:
    $$ParamOut = Param - LearningRate \cdot r \cdot u$$ with $$r = \|Param\| / \|u\|$$ (1 when either is 0, or without
    decay unless always_adapt)"""

    Beta1PowOut = Output("Beta1Pow for the next step.", dispensable=True)
    Beta2PowOut = Output("Beta2Pow for the next step.", dispensable=True)
    weight_decay = Attr(REQUIRED, "Weight decay.", type=AttrType.FLOAT)
    beta1 = BETA_1
    beta2 = BETA_2
    epsilon = Attr(1e-6, "Keeps the divisor from 0.")
    always_adapt = Attr(False, "Scale the step even without weight decay.")
    multi_precision = MULTI_PRECISION
    versions = OpVersion("lamb").checkpoint(
        "the op updates the powers itself", ("new_output", "Beta1PowOut", None), ("new_output", "Beta2PowOut", None)
    )


class MergedAdam(UpdateRule, type="merged_adam"):
    r"""$$ParamOut_i = Param_i - LearningRate_i \frac{\sqrt{1 - Beta2Pow_i}}{1 - Beta1Pow_i} \cdot \frac{m_1}{\sqrt{m_2}
    + epsilon \sqrt{1 - Beta2Pow_i}}$$

    As adam, for many parameters at once.
    """

    Param = Input("Parameters.", duplicable=True)
    Grad = Input("Their gradients.", duplicable=True)
    LearningRate = Input("One learning rate, or one per parameter.", duplicable=True)
    Moment1 = Input("Means of the gradients.", duplicable=True)
    Moment2 = Input("Means of their squares.", duplicable=True)
    Beta1Pow = Input("Powers of beta1 for this step.", duplicable=True)
    Beta2Pow = Input("Powers of beta2 for this step.", duplicable=True)
    MasterParam = Input("float32 copies of 16-bit parameters.", duplicable=True, dispensable=True)
    ParamOut = Output("Updated parameters.", duplicable=True)
    Moment1Out = Output("Updated Moment1.", duplicable=True)
    Moment2Out = Output("Updated Moment2.", duplicable=True)
    Beta1PowOut = Output("Beta1Pow for the next step.", duplicable=True)
    Beta2PowOut = Output("Beta2Pow for the next step.", duplicable=True)
    MasterParamOut = Output("Updated copies.", duplicable=True, dispensable=True)
    beta1 = Attr(0.9, "Share of Moment1 that is kept.", support_tensor=True)
    beta2 = Attr(0.999, "Share of Moment2 that is kept.", support_tensor=True)
    epsilon = Attr(1e-8, "Keeps the divisor from 0.", support_tensor=True)
    multi_precision = MULTI_PRECISION
    use_global_beta_pow = GLOBAL_BETA_POW
    inplace = ADAM_UPDATES
