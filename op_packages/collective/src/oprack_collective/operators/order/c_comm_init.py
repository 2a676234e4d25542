"""Operator of c_comm_init."""

from __future__ import annotations

from oprack.parallel.rings import join_ring
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import Scope


class CCommInitOp(OperatorBase):
    op_type = "c_comm_init"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        given = scope.find_var(self.input("X"))
        named = given.value if given is not None and isinstance(given.value, str) else ""
        attrs = self.attrs
        group = ",".join(sorted((attrs["endpoints"] or named).split(",")))
        join_ring(attrs["ring_id"], group, attrs["rank"], attrs["nranks"])
