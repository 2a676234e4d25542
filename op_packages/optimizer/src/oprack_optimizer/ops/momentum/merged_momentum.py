"""merged_momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_optimizer.ops._update import MULTI_PRECISION, infer_dtypes, infer_like

_UPDATES = {"Param": "ParamOut", "Velocity": "VelocityOut", "MasterParam": "MasterParamOut"}


class MergedMomentum(OpDef, type="merged_momentum"):
    r"""$$VelocityOut_i = mu \cdot Velocity_i + g_i, \quad ParamOut_i = Param_i - LearningRate_i \cdot VelocityOut_i$$

    As momentum, for many parameters at once.
    """

    Param = Input("Parameters.", duplicable=True)
    Grad = Input("Their gradients.", duplicable=True)
    Velocity = Input("Their velocities.", duplicable=True)
    LearningRate = Input("One learning rate, or one per parameter.", duplicable=True)
    MasterParam = Input("float32 copies of 16-bit parameters.", duplicable=True, dispensable=True)
    ParamOut = Output("Updated parameters.", duplicable=True)
    VelocityOut = Output("Updated velocities.", duplicable=True)
    MasterParamOut = Output("Updated copies.", duplicable=True, dispensable=True)
    mu = Attr(REQUIRED, "Share of the old velocity that is kept.", type=AttrType.FLOAT)
    use_nesterov = Attr(False, "Look ahead by one step.")
    regularization_method = Attr([], "l2_decay or empty, one per parameter.", type=AttrType.STRINGS)
    regularization_coeff = Attr([], "Weight of the decay, one per parameter.", type=AttrType.FLOATS)
    multi_precision = MULTI_PRECISION
    rescale_grad = Attr(1.0, "Factor of Grad.")
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_shape = infer_like(_UPDATES)
    infer_var_type = infer_dtypes(_UPDATES)
