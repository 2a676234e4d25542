"""Operator of p_send_array."""

from __future__ import annotations

import numpy as np
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope

from oprack_collective.kernels._ring import require_member, ring, send_with_shape


class PSendArrayOp(OperatorBase):
    op_type = "p_send_array"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        group, peer = ring(self.attrs["ring_id"]), self.attrs["peer"]
        require_member(self.type, "peer", peer, group)
        tensors: list[LoDTensor] = []
        for name in self.inputs.get("x", ()):
            value = self.get_input(scope, name)
            tensors += value if isinstance(value, LoDTensorArray) else [value]
        group.send(np.array([len(tensors)], np.int64), peer)
        for tensor in tensors:
            send_with_shape(tensor.array, group, peer)
