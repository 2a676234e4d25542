"""What an operator's kernel gets: inputs that are there, at its place, and attributes that variables give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.device import transform_tensor, transform_value
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.kernel import OpKernelType
from oprack.tensor import LoDTensor, Scope

if TYPE_CHECKING:
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext

Values = dict[str, list[Any]]


def require_inputs(op: OperatorWithKernel, values: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a needed input without a value, or too few of a list, before rules run."""
    if op.too_few:
        raise InvalidArgumentError(f"op {op.type}: input {op.too_few}")
    for slot in op.needed:
        if slot not in values:
            doc = op.info.proto.inputs[slot].doc
            raise InvalidArgumentError(
                f"op {op.type}: input {slot} is absent, but the op needs it; give the op a variable there"
                + (f": {doc}" if doc else "")
            )
        if all(v is None for v in values[slot]):
            names = ", ".join(map(repr, op.inputs[slot]))
            raise PreconditionNotMetError(
                f"op {op.type}: input {slot} (variable {names}) holds no value; feed it or run the op that "
                "writes it first: for a parameter, run the startup program or load its file"
            )


def transformed(
    op: OperatorWithKernel,
    values: Mapping[str, list[Any]],
    expected: OpKernelType,
    run: RunContext,
) -> Values:
    """The inputs at the place and with the dtype of the kernel; the variables in the scope stay as they are."""
    rule = op.info.kernel_type_for_var
    prepared: Values = {}
    for slot, vs in values.items():
        if slot in op.info.no_need_buffer_vars:
            prepared[slot] = vs
            continue
        new = vs
        for i, v in enumerate(vs):
            if not isinstance(v, LoDTensor):
                moved = transform_value(v, run.place, run.pool)
                if moved is not v:
                    new = list(vs) if new is vs else new
                    new[i] = moved
                continue
            dtype = None
            if rule is not None:
                actual = OpKernelType(v.place.kind, v.dtype)
                dtype = rule(slot, actual, expected).dtype
            if v.place == run.place and dtype in (None, v.dtype):
                continue
            if new is vs:
                new = list(vs)
            new[i] = transform_tensor(v, run.place, run.pool, dtype=dtype)
        prepared[slot] = new
    return prepared


def resolved_attrs(op: OperatorWithKernel, scope: Scope) -> dict[str, Any]:
    """All attributes. Where the program names a variable for one, its value is read and has the attribute's type."""
    resolved = dict(op.attrs)
    for name, source in op.tensor_attrs.items():
        proto = op.info.proto.attrs[name]
        names = [source] if isinstance(source, str) else list(source)
        flat = [x for n in names for x in np.asarray(op.get_input(scope, n)).reshape(-1).tolist()]
        if not proto.type.name.endswith("S") and len(flat) != 1:
            raise PreconditionNotMetError(
                f"op {op.type}: attribute {name!r} is taken from {', '.join(map(repr, names)) or 'no variable'}, "
                f"which holds {len(flat)} values; expected one"
            )
        resolved[name] = flat if proto.type.name.endswith("S") else flat[0]
    assert op.info.checker is not None
    return op.info.checker.check(resolved)
