"""Operator of c_comm_init_all."""

from __future__ import annotations

from oprack.parallel.rings import join_ring
from oprack.parallel.world import world
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import Scope


class CCommInitAllOp(OperatorBase):
    op_type = "c_comm_init_all"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        here = world()
        join_ring(self.attrs["ring_id"], "all", here.rank, here.size)
