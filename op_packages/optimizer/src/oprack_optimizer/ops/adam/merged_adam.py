"""merged_adam: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, Output

from oprack_optimizer.ops._update import MULTI_PRECISION, UpdateRule
from oprack_optimizer.ops.adam._family import ADAM_UPDATES, GLOBAL_BETA_POW


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
