"""Cases of hard_swish."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._family import X

ATTRS = {"threshold": 4.0, "scale": 5.0, "offset": 2.5}
CASES = [OpCase("hard_swish", {"X": X}, ATTRS, {"Out": X * np.clip(X + 2.5, 0, 4) / 5}, grads=["X"], name="of 1.x")]
