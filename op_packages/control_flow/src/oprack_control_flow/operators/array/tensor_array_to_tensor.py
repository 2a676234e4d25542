"""Operator of tensor_array_to_tensor."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope

from oprack_control_flow.operators.array._array import ArrayOperator


class TensorArrayToTensorOp(ArrayOperator):
    op_type = "tensor_array_to_tensor"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        array, axis, xp = self.array(scope, "X"), self.attrs["axis"], run.device.xp
        missing = [i for i, t in enumerate(array) if t is None]
        if not array or missing:
            raise InvalidArgumentError(
                f"op tensor_array_to_tensor: array {self.input('X')!r} has "
                + (f"nothing at places {missing}" if missing else "no places")
                + "; write all of them first"
            )
        parts = [t.array for t in array]
        stack = self.attrs["use_stack"]
        sizes = [1 if stack else p.shape[axis] for p in parts]
        joined = xp.stack(parts, axis=axis) if stack else xp.concatenate(parts, axis=axis)
        self.set_output(scope, self.output("Out"), LoDTensor(joined, place=run.place))
        if "OutIndex" in self.outputs:
            index = LoDTensor(xp.asarray(sizes, dtype="int32"), place=run.place)
            self.set_output(scope, self.output("OutIndex"), index)


class TensorArrayToTensorGradOp(ArrayOperator):
    op_type = "tensor_array_to_tensor_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        array, axis, xp = self.array(scope, "X"), self.attrs["axis"], run.device.xp
        grad = self.get_input(scope, self.input("Out@GRAD")).array
        if self.attrs["use_stack"]:
            parts = [xp.squeeze(p, axis) for p in xp.split(grad, len(array), axis=axis)]
        else:
            parts = xp.split(grad, np.cumsum([t.shape[axis] for t in array])[:-1].tolist(), axis=axis)
        grads = [LoDTensor(p.copy(), t.lod, place=run.place, check=False) for p, t in zip(parts, array, strict=True)]
        self.set_output(scope, self.output("X@GRAD"), LoDTensorArray(grads))
