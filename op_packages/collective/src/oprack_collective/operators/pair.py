"""Operators by which one rank sends arrays of tensors to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
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
        self._require_tensors(tensors)
        group.send(np.array([len(tensors)], np.int64), peer)
        for tensor in tensors:
            send_with_shape(tensor.array, group, peer)

    def _require_tensors(self, found: Sequence[Any]) -> None:
        """Before anything is sent, since the peer waits for all of it."""
        for k, value in enumerate(found):
            if not isinstance(value, LoDTensor):
                what = "absent" if value is None else f"a {type(value).__name__}"
                raise InvalidArgumentError(
                    f"op {self.type}: element {k} of the {len(found)} of x is {what}; expected tensors. write_to_array "
                    "fills a gap in an array"
                )
