"""Operator of lod_array_length."""

from __future__ import annotations

from oprack.runtime import RunContext
from oprack.tensor import LoDTensor, Scope

from oprack_control_flow.operators.array._array import ArrayOperator


class LoDArrayLengthOp(ArrayOperator):
    op_type = "lod_array_length"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        length = run.device.xp.asarray([len(self.array(scope, "X"))], dtype="int64")
        self.set_output(scope, self.output("Out"), LoDTensor(length, place=run.place))
