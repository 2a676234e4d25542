"""Operator of c_comm_init_multitrainer."""

from __future__ import annotations

from oprack.parallel.rings import join_ring
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import Scope


class CCommInitMultitrainerOp(OperatorBase):
    op_type = "c_comm_init_multitrainer"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        attrs = self.attrs
        join_ring(attrs["ring_id"], "trainers", attrs["trainer_id"], attrs["ntrainers"])
