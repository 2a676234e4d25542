"""batch_norm with the running statistics; with those of the batch it is left to NumPy."""

from __future__ import annotations

import numpy as np

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import address, channels_last_desc, empty_image, image_desc
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, PrimitiveDesc
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, served


def build(x, epsilon):
    """Plan for [N, C, *spatial]."""
    if 0 in x.shape:
        raise NotServedError("an empty tensor")
    image = channels_last_desc(x.shape)
    flags = _c.USE_GLOBAL_STATS | _c.USE_SCALE | _c.USE_SHIFT
    attributes = Attributes()
    desc = PrimitiveDesc(
        "batch_normalization_forward", LIBRARY.engine, _c.FORWARD_INFERENCE, image, image, epsilon, flags, attributes
    )
    plan = Plan()
    given = plan.input(image_desc(x))
    row = MemoryDesc.strided((x.shape[1],))
    arguments = {a: plan.input(row) for a in (_c.MEAN, _c.VARIANCE, _c.SCALE, _c.SHIFT)}
    inner = given if given.desc == image else plan.reorder(given, image)
    plan.add(desc, {_c.SRC: inner, _c.DST: plan.output(image), **arguments})
    return plan


@served("batch_norm")
def batch_norm(
    X, Scale=None, Bias=None, Mean=None, Variance=None, MomentumTensor=None, *,
    is_test, epsilon, data_layout, use_global_stats, trainable_statistics, ctx,
):  # fmt: skip
    fixed = use_global_stats or (is_test and not trainable_statistics)
    parameters = (Mean, Variance, Scale, Bias)
    if not fixed or X.ndim != 4 or X.size < Limits.eltwise or any(p is None or p.ndim != 1 for p in parameters):
        return NotImplemented
    if any(p.strides != (4,) and p.size > 1 for p in parameters):
        return NotImplemented
    last = data_layout == "NHWC"
    x = X.transpose(0, 3, 1, 2) if last else X
    plan = THREAD.plan(("batch_norm", x.shape, x.strides, epsilon), build, x, epsilon)
    if plan is None:
        return NotImplemented
    y = empty_image(x.shape)
    plan.run(THREAD, address(x), *map(address, parameters), address(y))
    inverse_std = 1 / np.sqrt(Variance + Variance.dtype.type(epsilon))
    y = y.transpose(0, 2, 3, 1) if last else y
    return y, Mean.copy(), Variance.copy(), Mean.copy(), inverse_std
