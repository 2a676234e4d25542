"""paddle.metric: the function accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack

from oprack_paddle.state import in_dynamic_mode


def accuracy(input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None, name: Any = None) -> Any:
    """The share of examples whose label is among the k likeliest classes."""
    if not in_dynamic_mode():
        return oprack.layers.accuracy(input, label, k, correct, total)
    scores, right = np.asarray(input), np.asarray(label).reshape(-1, 1)
    likeliest = np.argsort(-scores, axis=-1, kind="stable")[:, :k]
    return oprack.to_tensor(np.asarray((likeliest == right).any(-1).mean(), "float32"))
