"""LazyInterpreter: a call appends an op to the current program."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.interpreter.modes import register_interpreter
from oprack.interpreter.op_expr import OpExpr, result_class
from oprack.interpreter.symbol import current_capture, symbol
from oprack.layers.helper import LayerHelper
from oprack.layers.variable import Variable


class LazyInterpreter:
    """Appends to the current program; outputs are new Variables, with shapes and dtypes inferred."""

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        """Append a call to the current program.

        Args:
            expr: The op.
            args: Its Variables, None for absent ones.

        Returns:
            Variables for the outputs.
        """
        program = next((v.program for v in args if isinstance(v, Variable)), None)
        helper = LayerHelper(expr.type, main_program=program)
        variables = [self._variable(expr, v) for v in args]
        inputs = _by_slot(expr, variables)
        in_place = {out: inputs[x] for x, out in expr.in_place.items() if x in inputs}
        created = _new_outputs(expr, helper, in_place)
        outputs = in_place | created
        op = helper.append_op(expr.type, inputs, outputs, expr.attrs)
        if current_capture.get() is not None:
            # Random ops then draw by type in the order of calls, as in eager mode, whatever line called them.
            op.origin = 0
        if variables and all(v is None or v.stop_gradient for v in variables):
            _stop_gradients(created)
        return _returned(expr, {slot: [symbol(v) for v in values] for slot, values in outputs.items()})

    def _variable(self, expr: OpExpr, value: Any) -> Any:
        if value is None or isinstance(value, Variable):
            return value
        capture = current_capture.get()
        if isinstance(value, Tensor) and capture is not None:
            return capture.variable(value)
        raise InvalidArgumentError(
            f"op {expr.type}: {value.describe() if isinstance(value, Tensor) else repr(value)} is given together with "
            "Variables of a program; make it a constant of the program with oprack.layers.assign(x.numpy()), or write "
            "the program by oprack.to_program, which takes tensors in"
        )


def _by_slot(expr: OpExpr, variables: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Group the variables of a call, a flat list, by input slot."""
    inputs, first = {}, 0
    for slot, count in expr.inputs:
        inputs[slot] = variables[first : first + count]
        first += count
    return inputs


def _new_outputs(expr: OpExpr, helper: LayerHelper, written: Collection[str]) -> dict[str, Sequence[Any]]:
    """New variables for all output slots but those of `written`, for which in-place ops reuse their inputs."""
    stopped = {slot for slot, p in expr.proto.outputs.items() if p.intermediate or p.stop_gradient}
    return {
        slot: [helper.create_variable_for_type_inference(stop_gradient=slot in stopped) for _ in wanted]
        for slot, wanted in expr.outputs
        if slot not in written
    }


def _stop_gradients(outputs: Mapping[str, Sequence[Any]]) -> None:
    for variables in outputs.values():
        for v in variables:
            v.stop_gradient = True


def _returned(expr: OpExpr, outputs: Mapping[str, Sequence[Any]]) -> Any:
    """What the call returns: nothing, one output, or a named tuple of several."""
    protos = expr.proto.outputs
    fields = [outputs[s] if protos[s].duplicable else outputs[s][0] for s in expr.returned]
    if len(fields) == 1:
        return fields[0]
    return result_class(expr.type, tuple(expr.returned))(*fields) if fields else None


register_interpreter("lazy", LazyInterpreter)
