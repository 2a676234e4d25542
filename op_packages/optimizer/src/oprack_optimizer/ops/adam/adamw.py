"""adamw: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import MULTI_PRECISION
from oprack_optimizer.ops.adam._family import GLOBAL_BETA_POW, LAZY_MODE, MULTITHREAD_ROWS, AdamBase


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
