"""Operator of get_places."""

from __future__ import annotations

import os

from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import CPUPlace, CUDAPlace, Scope


class GetPlacesOp(OperatorBase):
    op_type = "get_places"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        wanted, count = self.attrs["device_type"], self.attrs["device_count"]
        on_cpu = wanted == "CPU" or (wanted == "AUTO" and run.place.kind == "cpu")
        if on_cpu:
            places = [CPUPlace()] * (count or os.cpu_count() or 1)
        else:
            places = [CUDAPlace(i) for i in range(count or 1)]
        self.set_output(scope, self.output("Out"), places)
