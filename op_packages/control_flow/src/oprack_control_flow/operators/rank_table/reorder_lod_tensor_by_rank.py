"""Operator of reorder_lod_tensor_by_rank."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import Scope

from oprack_control_flow.operators.rank_table._ranked import RankedOperator
from oprack_control_flow.rank_table import take_units


class _Reorder(RankedOperator):
    def reorder(self, scope: Scope, run: RunContext, order: np.ndarray) -> None:
        x = self.tensor(scope, "X")
        units = len(x.lod[0]) - 1 if x.lod else x.shape[0]
        if units != len(order):
            raise InvalidArgumentError(
                f"op {self.type}: X has {units} {'sequences' if x.lod else 'rows'} but the rank table {len(order)}; "
                "expected as many"
            )
        self.put(scope, "Out", *take_units(x.array, x.lod, order, run.device.xp))


class ReorderLoDTensorByRankOp(_Reorder):
    op_type = "reorder_lod_tensor_by_rank"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        self.reorder(scope, run, self.table(scope).index)


class ReorderLoDTensorByRankGradOp(_Reorder):
    op_type = "reorder_lod_tensor_by_rank_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        self.reorder(scope, run, np.argsort(self.table(scope).index, kind="stable"))
