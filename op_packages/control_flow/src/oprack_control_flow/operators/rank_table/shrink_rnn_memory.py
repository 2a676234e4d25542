"""Operator of shrink_rnn_memory."""

from __future__ import annotations

import numpy as np
from oprack.runtime import RunContext
from oprack.tensor import Scope

from oprack_control_flow.operators.rank_table._ranked import RankedOperator
from oprack_control_flow.rank_table import take_units
from oprack_control_flow.steps import scalar


class ShrinkRnnMemoryOp(RankedOperator):
    op_type = "shrink_rnn_memory"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x, step = self.tensor(scope, "X"), int(scalar(self.type, "I", self.tensor(scope, "I")))
        self.put(scope, "Out", *take_units(x.array, x.lod, np.arange(self.table(scope).active(step)), run.device.xp))


class ShrinkRnnMemoryGradOp(RankedOperator):
    op_type = "shrink_rnn_memory_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x = self.tensor(scope, "X")
        grad = run.device.xp.zeros(x.shape, x.array.dtype)
        given = self.inputs.get("Out@GRAD", ())
        flow = scope.find_var(given[0]) if given else None
        if flow is not None and flow.value is not None:
            grad[: flow.value.shape[0]] = flow.value.array
        self.put(scope, "X@GRAD", grad, x.lod)
