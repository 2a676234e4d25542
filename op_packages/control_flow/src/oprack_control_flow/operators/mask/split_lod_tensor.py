"""Operator of split_lod_tensor."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import Scope

from oprack_control_flow.operators.mask._masked import MaskedOperator
from oprack_control_flow.rank_table import take_units


class SplitLoDTensorOp(MaskedOperator):
    op_type = "split_lod_tensor"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x, mask = self.tensor(scope, "X"), self.mask(scope)
        lod = x.lod[self.attrs["level"] :]
        units = len(lod[0]) - 1 if lod else x.shape[0]
        if units != len(mask):
            raise InvalidArgumentError(
                f"op split_lod_tensor: X has {units} {'sequences' if lod else 'rows'} but Mask {len(mask)} elements; "
                "expected as many"
            )
        for slot, chosen in (("OutTrue", mask), ("OutFalse", ~mask)):
            self.put(scope, slot, *take_units(x.array, lod, np.flatnonzero(chosen), run.device.xp))
