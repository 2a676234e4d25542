"""Operator of lod_tensor_to_array."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope

from oprack_control_flow.operators.rank_table._ranked import RankedOperator
from oprack_control_flow.rank_table import take_units


class LoDTensorToArrayOp(RankedOperator):
    op_type = "lod_tensor_to_array"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        table, x, xp = self.table(scope), self.tensor(scope, "X"), run.device.xp
        offsets, deeper = table.offsets(), x.lod[table.level + 1 :]
        units = len(deeper[0]) - 1 if deeper else x.shape[0]
        if offsets[-1] != units:
            raise InvalidArgumentError(
                f"op lod_tensor_to_array: X has {units} elements but the rank table's sequences {int(offsets[-1])}; "
                "expected the tensor that was ranked, or one of its shape"
            )
        out = LoDTensorArray()
        for t in range(table.steps):
            array, lod = take_units(x.array, deeper, offsets[table.index[: table.active(t)]] + t, xp)
            out.append(LoDTensor(array, lod, place=x.place, check=False))
        self.set_output(scope, self.output("Out"), out)
