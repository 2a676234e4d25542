"""Cases of relu6."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._family import X


def relu6(threshold):
    """With an attribute threshold, or without it."""
    attrs = {"threshold": threshold} if threshold else {}
    clipped = np.clip(X, 0, threshold or 6.0)
    return OpCase("relu6", {"X": X}, attrs, {"Out": clipped}, grads=["X"], name=f"threshold {threshold}")


CASES = [relu6(3.2), relu6(None)]
