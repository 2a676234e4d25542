"""Operators that open rings of ranks."""

from __future__ import annotations

from oprack.parallel.rings import join_ring
from oprack.parallel.world import world
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import Scope


# What operators share by which Paddle agrees on a ring before it is opened.
class GenIdOp(OperatorBase):
    """Gives the addresses of a ring in one order on all of its ranks."""

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        addresses = sorted([self.attrs["endpoint"], *self.attrs["other_endpoints"]])
        self.set_output(scope, self.output("Out"), ",".join(addresses))


# Operator of c_comm_init.
class CCommInitOp(OperatorBase):
    op_type = "c_comm_init"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        given = scope.find_var(self.input("X"))
        named = given.value if given is not None and isinstance(given.value, str) else ""
        attrs = self.attrs
        group = ",".join(sorted((attrs["endpoints"] or named).split(",")))
        join_ring(attrs["ring_id"], group, attrs["rank"], attrs["nranks"])


# Operator of c_comm_init_all.
class CCommInitAllOp(OperatorBase):
    op_type = "c_comm_init_all"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        here = world()
        join_ring(self.attrs["ring_id"], "all", here.rank, here.size)


# Operator of c_comm_init_multitrainer.
class CCommInitMultitrainerOp(OperatorBase):
    op_type = "c_comm_init_multitrainer"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        attrs = self.attrs
        join_ring(attrs["ring_id"], "trainers", attrs["trainer_id"], attrs["ntrainers"])


# Operator of c_gen_bkcl_id.
class CGenBkclIdOp(GenIdOp):
    op_type = "c_gen_bkcl_id"


# Operator of c_gen_nccl_id.
class CGenNcclIdOp(GenIdOp):
    op_type = "c_gen_nccl_id"


# Operator of c_gen_xccl_id.
class CGenXcclIdOp(GenIdOp):
    op_type = "c_gen_xccl_id"
