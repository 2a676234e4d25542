"""Cases of swish."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._family import X


def swish(beta):
    """With an attribute beta, or without it."""
    attrs = {"beta": beta} if beta else {}
    return OpCase("swish", {"X": X}, attrs, {"Out": X / (1 + np.exp(-(beta or 1.0) * X))}, ["X"], name=f"beta {beta}")


CASES = [swish(2.3), swish(None)]
