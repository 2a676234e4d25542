"""lamb: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, OpVersion, Output
from oprack.types import AttrType

from oprack_optimizer.ops._update import MULTI_PRECISION
from oprack_optimizer.ops.adam._family import BETA_1, BETA_2, MomentsRule


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
