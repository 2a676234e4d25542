"""BoundExpr: an op expression specialized to the metas of its arguments; the first call decides how later ones run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.cache import Cache
from oprack.desc import ProgramDesc
from oprack.errors import InvalidArgumentError, KernelResultError
from oprack.interpreter.devices import RANDOM, context, home, pool
from oprack.interpreter.op_expr import OpExpr, require_no_block
from oprack.interruption import let_interruptions_pass
from oprack.kernel import ANY_KERNEL, DETERMINISTIC_KERNELS
from oprack.layers.append import errors_at_user_line
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager
from oprack.runtime.checks import Limits
from oprack.runtime.infer import lists_elements
from oprack.runtime.kernel_call import OpRecord, is_promised
from oprack.runtime.kernel_operator import OperatorWithKernel, create_operator
from oprack.runtime.plan.shape_check import Promised
from oprack.runtime.prepared import PreparedProgram
from oprack.runtime.run_context import RunContext
from oprack.tensor import LoDTensor, Place, Scope
from oprack.tensor.kinds import KINDS
from oprack.tensor.meta import TensorMeta, meta_of_value
from oprack.types import EMPTY_VAR, VarType, dtype_enum

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor


_SHAPES = 1024  # bounds the memory of an op that sees a new shape in every call
Outputs = list[Any]


def held(tensor: Tensor | None) -> Any:
    """The value of a scope's variable for a tensor; marked as shared, so that no op overwrites the tensor's memory."""
    if tensor is None:
        return None
    value = tensor._value
    if tensor._meta.container is LoDTensor:
        return LoDTensor(value, tensor._lod, place=tensor._meta.place, check=False, shared=True)
    return value


def _common_place(expr: OpExpr, metas: Sequence[TensorMeta | None]) -> Place:
    """The place of all inputs; for an op without inputs, that where things are created."""
    places = [k.place for k in metas if k is not None]
    place: Place = places[0] if places else home()
    if any(p != place for p in places):
        raise InvalidArgumentError(
            f"op {expr.type}: its inputs are at {', '.join(map(str, places))}; expected one place; move them with "
            "x.to(place)"
        )
    return place


class BoundExpr:
    """An op expression for arguments of certain metas: its operator, and the decisions of the first call.

    Attributes:
        record: What the reference path decided; None for an op that runs itself.
        outputs: Metas of the outputs, flat; None for those that are not computed.
        seen: Shapes that the op's shape rule has accepted.
    """

    def __init__(self, expr: OpExpr, metas: Sequence[TensorMeta | None], args: Sequence[Tensor | None]) -> None:
        self.expr, self.metas = expr, tuple(metas)
        self.place = _common_place(expr, metas)
        self.desc = expr.desc([k is not None for k in metas])
        self.names_in = [n for names in self.desc.inputs.values() for n in names]
        self.names_out = [n for names in self.desc.outputs.values() for n in names]
        require_no_block(expr.proto)
        program = self._program(args)
        manager = default_manager()
        self.operator = create_operator(self.desc, program.blocks[0], 0, manager, self.place)
        self.run = RunContext(
            place=self.place,
            device=context(self.place),
            pool=pool(),
            program=PreparedProgram(program, manager, self.place),
            random=RANDOM,
            rules=DETERMINISTIC_KERNELS if expr.deterministic else ANY_KERNEL,
            limits=Limits.of(),
        )
        self.seen = Cache(_SHAPES)
        self.record: OpRecord | None = None
        self.outputs: list[TensorMeta | None] = []

    def _program(self, args: Sequence[Tensor | None]) -> ProgramDesc:
        """A program of this op alone, with inputs declared as the arguments are and outputs inferred by its rules."""
        program = ProgramDesc()
        block = program.blocks[0]
        for name, meta, arg in zip(self.names_in, self.metas, args, strict=True):
            if meta is not None and arg is not None and not block.has_var(name):
                dtype = None if meta.name is None else dtype_enum(meta.name)
                var_type = KINDS.get(meta.container, VarType.RAW)
                block.create_var(name, type=var_type, dtype=dtype, shape=arg.shape, lod_level=meta.lod_level)
        for name in self.names_out:
            if name != EMPTY_VAR and not block.has_var(name):  # an output that is an input is declared already
                block.create_var(name)
        block.append_op(self.desc)
        infer_op(self.desc, block, self.expr.info, lod_is_known=True, guesses=False)
        return program

    def first(self, args: Sequence[Tensor | None]) -> Outputs:
        """Run the first call, which decides `record` and `outputs`."""
        records: list[OpRecord] = []
        self.run.recorder = records
        try:
            values = self.reference(args)
        finally:
            self.run.recorder = None
        self.record = records[0] if records else None
        self.outputs = [None if v is None else meta_of_value(v, self.place, len(lod)) for v, lod in map(_bare, values)]
        return values

    @property
    def complete(self) -> bool:
        """Whether the first call showed the metas of all outputs, which later calls of these metas share."""
        return all(k is None or k.dtype is not None for k in self.outputs)

    @property
    def generated(self) -> bool:
        """Whether generated code can do what the reference path did."""
        return self.record is not None and self.record.compilable

    def reference(self, args: Sequence[Tensor | None]) -> Outputs:
        """Values of the outputs, flat, by the reference path. Raises what the op raises, with the user's line."""
        scope = Scope()
        for name, arg in zip(self.names_in, args, strict=True):
            if name != EMPTY_VAR:
                scope.var(name).value = held(arg)
        with errors_at_user_line(), np.errstate(all="ignore"), self.run.device.activate():
            self.operator.run(scope, self.run)
        values = []
        for name in self.names_out:
            var = scope.find_var(name) if name != EMPTY_VAR else None
            values.append(None if var is None else var.value)
        return values

    def accept(self, shapes: Any, args: Sequence[Tensor | None]) -> Promised | None:
        """Run the op's shape rule for shapes that it has not seen, and return the dims that it infers.

        Shapes are remembered as seen only if the result depends on them alone, and not on values or offsets. Raises
        what the rule raises.
        """
        operator, settled, promised = self.operator, shapes is not None, None
        if isinstance(operator, OperatorWithKernel):
            values, k = {}, 0
            for slot, count in self.expr.inputs:
                if slot in operator.inputs:
                    values[slot] = [held(a) for a in args[k : k + count]]
                k += count
            try:
                inferred = operator.ask_shape_rule(values, operator.attrs)
                settled, promised = settled and not inferred.from_values, inferred.dims
                if self.run.limits.memory is not None:
                    positions = [(s, i) for s, flags in self.expr.outputs for i in range(len(flags))]
                    dtypes = {p: k.dtype for p, k in zip(positions, self.outputs, strict=True) if k is not None}
                    listed = partial(lists_elements, operator, values)
                    self.run.limits.check_outputs(
                        operator, inferred.dims, lambda slot, i: dtypes.get((slot, i)), listed
                    )
            except Exception:
                let_interruptions_pass()
                self.reference(args)  # It fails as well, with the op and the user's line in the message.
                raise
        if settled:
            self.seen[shapes] = True
        return promised

    def compare(self, promised: Promised, results: Sequence[Any], args: Sequence[Tensor | None]) -> None:
        """Raise KernelResultError if the kernel's results do not have the dims that the shape rule inferred."""
        positions = [(s, i) for s, flags in self.expr.outputs for i in range(len(flags))]
        for position, value in zip(positions, results, strict=True):
            dims = promised.get(position)
            if dims is not None and hasattr(value, "shape") and not is_promised(value.shape, dims):
                self.seen.clear()
                self.reference(args)  # It raises the same error with the name of the kernel.
                raise KernelResultError(f"op {self.operator.type}: {position[0]} has shape {list(value.shape)}")


def _bare(value: Any) -> tuple[Any, Any]:
    return (value.array, value.lod) if isinstance(value, LoDTensor) else (value, ())
