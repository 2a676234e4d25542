"""Operators by which one rank sends arrays of tensors to another."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, numpy_dtype

from oprack_collective.kernels._ring import receive_with_shape, require_member, ring, send_with_shape


# Operator of p_recv_array.
class PRecvArrayOp(OperatorBase):
    op_type = "p_recv_array"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        group, peer = ring(self.attrs["ring_id"]), self.attrs["peer"]
        require_member(self.type, "peer", peer, group)
        count = int(group.receive((1,), np.dtype(np.int64), peer)[0])
        dtype = numpy_dtype(self.attrs["dtype"])
        found = [LoDTensor(receive_with_shape(dtype, group, peer)) for _ in range(count)]
        self.set_output(scope, self.output("out"), LoDTensorArray(found))


# Operator of p_send_array.
class PSendArrayOp(OperatorBase):
    op_type = "p_send_array"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        group, peer = ring(self.attrs["ring_id"]), self.attrs["peer"]
        require_member(self.type, "peer", peer, group)
        tensors: list[LoDTensor | Any] = []
        for name in self.inputs.get("x", ()):
            value = self.get_input(scope, name)
            tensors += value if isinstance(value, LoDTensorArray) else [value]
        group.send(np.array([len(tensors)], np.int64), peer)
        for tensor in tensors:
            send_with_shape(tensor.array, group, peer)
