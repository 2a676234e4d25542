"""Cases of pow2_decay_with_linear_warmup: no warmup, the last step, behind the end."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "pow2_decay_with_linear_warmup",
        {"LearningRate": np.zeros(1), "Step": np.array([step])},
        {"warmup_steps": warmup, "total_steps": 10, "base_lr": 0.5, "end_lr": 0.25},
        {"LearningRateOut": np.array([rate]), "StepOut": np.array([step + 1])},
        name=f"{warmup}-{step}",
    )
    for warmup, step, rate in ((0, 4, 0.25 * 0.25 + 0.25), (4, 3, 0.5), (4, 9, 0.25), (4, 20, 0.25))
]
