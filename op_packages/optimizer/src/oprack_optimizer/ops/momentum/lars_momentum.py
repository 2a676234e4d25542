"""lars_momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_optimizer.ops._update import MULTI_PRECISION, infer_dtypes, infer_like

_UPDATES = {"Param": "ParamOut", "Velocity": "VelocityOut", "MasterParam": "MasterParamOut"}


class LarsMomentum(OpDef, type="lars_momentum"):
    r"""Momentum with a learning rate per parameter:
    $$lr = LearningRate \cdot \frac{lars\_coeff \|Param\|}{\|Grad\| + d \|Param\| + epsilon}$$ with weight decay d,
    $$VelocityOut = mu \cdot Velocity + lr (Grad + d \cdot Param)$$, $$ParamOut = Param - VelocityOut$$"""

    Param = Input("Parameters.", duplicable=True)
    Grad = Input("Their gradients.", duplicable=True)
    Velocity = Input("Their velocities.", duplicable=True)
    LearningRate = Input("Their learning rates.", duplicable=True)
    MasterParam = Input("float32 copies of 16-bit parameters.", duplicable=True, dispensable=True)
    ParamOut = Output("Updated parameters.", duplicable=True)
    VelocityOut = Output("Updated velocities.", duplicable=True)
    MasterParamOut = Output("Updated copies.", duplicable=True, dispensable=True)
    mu = Attr(REQUIRED, "Share of the old velocity that is kept.", type=AttrType.FLOAT)
    lars_coeff = Attr(0.001, "Trust in the norm of a parameter.")
    lars_weight_decay = Attr([0.0005], "Weight decay: one number, or one per parameter.")
    epsilon = Attr(0.0, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    rescale_grad = Attr(1.0, "Factor of Grad.")
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_shape = infer_like(_UPDATES)
    infer_var_type = infer_dtypes(_UPDATES)
