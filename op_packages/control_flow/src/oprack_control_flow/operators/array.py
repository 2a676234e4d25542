"""Tensor arrays: written, read, counted, joined."""

from __future__ import annotations

import numpy as np
from oprack.device import dense_rows
from oprack.errors import InvalidArgumentError
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows

from oprack_control_flow.steps import reference, scalar, zeros_like


# What operators of tensor arrays share.
# Tensors go in and out without a copy, marked so that nobody writes into them.
class ArrayOperator(OperatorBase):
    def array(self, scope: Scope, slot: str) -> LoDTensorArray:
        """The array of an input slot; empty when nothing was written to it yet."""
        name = self.input(slot)
        var = scope.find_var(name)
        if var is None or var.value is None:
            return LoDTensorArray()
        if not isinstance(var.value, LoDTensorArray):
            raise InvalidArgumentError(
                f"op {self.type}: {slot} (variable {name!r}) is a {type(var.value).__name__}; expected a tensor array, "
                "as write_to_array makes it"
            )
        return var.value

    def place(self, scope: Scope) -> int:
        """The value of I. Raises InvalidArgumentError when it is negative."""
        index = int(scalar(self.type, "I", self.get_input(scope, self.input("I"))))
        if index < 0:
            raise InvalidArgumentError(f"op {self.type}: I is {index}; expected a place from 0")
        return index


# Operator of lod_array_length.
class LoDArrayLengthOp(ArrayOperator):
    op_type = "lod_array_length"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        length = run.device.xp.asarray([len(self.array(scope, "X"))], dtype="int64")
        self.set_output(scope, self.output("Out"), LoDTensor(length, place=run.place))


# Operator of read_from_array.
class ReadFromArrayOp(ArrayOperator):
    op_type = "read_from_array"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        array, index, name = self.array(scope, "X"), self.place(scope), self.output("Out")
        found = array[index] if index < len(array) else None
        if found is not None:
            self.set_output(scope, name, reference(found))
        elif "X_W" in self.inputs:
            self.set_output(scope, name, zeros_like(self.get_input(scope, self.input("X_W")), run.device.xp))
        else:
            raise InvalidArgumentError(
                f"op read_from_array: place {index} of array {self.input('X')!r} was never written; "
                f"it has {len(array)} places, so write it first or read another one"
            )


# Operator of tensor_array_to_tensor.
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
        parts = [t.array for t in array if t is not None]
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
        axis, xp = self.attrs["axis"], run.device.xp
        array = [t for t in self.array(scope, "X") if t is not None]  # all of them, or the op itself had failed
        grad = self.get_input(scope, self.input("Out@GRAD")).array
        if self.attrs["use_stack"]:
            parts = [xp.squeeze(p, axis) for p in xp.split(grad, len(array), axis=axis)]
        else:
            parts = xp.split(grad, np.cumsum([t.shape[axis] for t in array])[:-1].tolist(), axis=axis)
        grads = [LoDTensor(p.copy(), t.lod, place=run.place, check=False) for p, t in zip(parts, array, strict=True)]
        self.set_output(scope, self.output("X@GRAD"), LoDTensorArray(grads))


# Operator of write_to_array.
class WriteToArrayOp(ArrayOperator):
    """Changes the array in place, so that outer scopes see it."""

    op_type = "write_to_array"
    _LONGEST = 1 << 24  # places; a program must not fill the memory with a wild index

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        index, name = self.place(scope), self.output("Out")
        value = self.get_input(scope, self.input("X"))
        if index >= self._LONGEST:
            raise InvalidArgumentError(f"op write_to_array: I is {index}; expected a place below {self._LONGEST}")
        var = scope.find_var(name) or scope.var(name)
        if not isinstance(var.value, LoDTensorArray):
            var.value = LoDTensorArray()
        var.value.extend([None] * (index + 1 - len(var.value)))
        if isinstance(value, SelectedRows):
            var.value[index] = LoDTensor(dense_rows(value, run.device.xp), place=value.place)
        else:
            var.value[index] = reference(value)
