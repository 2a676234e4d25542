"""adam: all of the op but its kernels."""

from __future__ import annotations

from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import MULTI_PRECISION
from oprack_optimizer.ops.adam._family import GLOBAL_BETA_POW, LAZY_MODE, MULTITHREAD_ROWS, AdamBase


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
