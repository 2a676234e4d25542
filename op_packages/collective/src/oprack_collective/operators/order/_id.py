"""What operators share by which Paddle agrees on a ring before it is opened."""

from __future__ import annotations

from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import Scope


class GenIdOp(OperatorBase):
    """Gives the addresses of a ring in one order on all of its ranks."""

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        addresses = sorted([self.attrs["endpoint"], *self.attrs["other_endpoints"]])
        self.set_output(scope, self.output("Out"), ",".join(addresses))
