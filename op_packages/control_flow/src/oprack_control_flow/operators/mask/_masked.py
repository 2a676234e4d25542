"""What operators with an input Mask share."""

from __future__ import annotations

import numpy as np
from oprack.tensor import Scope

from oprack_control_flow.operators.rank_table._ranked import RankedOperator
from oprack_control_flow.steps import host_array


class MaskedOperator(RankedOperator):
    """An op with a bool Mask over the sequences of a level."""

    def mask(self, scope: Scope) -> np.ndarray:
        return host_array(self.tensor(scope, "Mask")).reshape(-1).astype(bool)
