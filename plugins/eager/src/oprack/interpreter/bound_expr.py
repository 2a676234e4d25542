"""BoundExpr: an op expression specialized to the metas of its arguments; the first call decides how later ones run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from oprack.desc import BlockDesc, OpDesc, ProgramDesc
from oprack.eager_tensor.devices import RANDOM, home
from oprack.eager_tensor.meta import TensorMeta, meta_of_value
from oprack.errors import InvalidArgumentError, OprackError, PreconditionNotMetError
from oprack.interpreter.op_expr import OpExpr, require_no_block
from oprack.layers.user_line import name_user_line
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import PackManager, default_manager
from oprack.runtime.checks import Limits
from oprack.runtime.kernel_operator import create_operator
from oprack.runtime.plan.record import OpRecord, ShapeCheck, recording
from oprack.runtime.run_context import RunContext
from oprack.tensor import LoDTensor, Place, Scope
from oprack.tensor.kinds import KINDS
from oprack.types import EMPTY_VAR, VarType, dtype_enum

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor


Outputs = list[Any]


class _OneOp:
    """What a run asks of its program (RunProgram), for an op that is called by itself and so runs no blocks."""

    block_id = 0

    def __init__(self, bound: BoundExpr, manager: PackManager) -> None:
        self._bound, self.manager = bound, manager

    @property
    def source(self) -> ProgramDesc:
        return self._bound.program

    @property
    def last_readers(self) -> dict[tuple[str, str], tuple[int, int]]:
        op = self._bound.desc
        return {(op.type, name): (0, 0) for name in op.input_arg_names()}

    def block(self, index: int) -> NoReturn:
        raise PreconditionNotMetError(
            f"op {self._bound.desc.type} asks for block {index}, but it was called by itself; build a program with "
            "oprack.layers"
        )


class _Block(BlockDesc):
    """The block of an op that is called by itself: few ops ask for what is in it, and it is written when one does."""

    __slots__ = ("_bound",)

    def __init__(self, bound: BoundExpr) -> None:
        self.idx, self._bound = 0, bound

    def __getattr__(self, name: str) -> Any:
        if name not in BlockDesc.__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._bound.program.blocks[0], name)


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
        check: The op's shape rule, which knows the shapes that it has accepted; None without a record.
    """

    def __init__(self, expr: OpExpr, metas: Sequence[TensorMeta | None], args: Sequence[Tensor | None]) -> None:
        self.expr, self.metas = expr, tuple(metas)
        self.place = _common_place(expr, metas)
        self.desc = expr.desc([k is not None for k in metas])
        self.names_in = [n for names in self.desc.inputs.values() for n in names]
        self.names_out = [n for names in self.desc.outputs.values() for n in names]
        require_no_block(expr.proto)
        self._shapes = [None if a is None else a.shape for a in args]
        manager = default_manager()
        pool = manager.device_contexts
        self.operator = create_operator(self.desc, _Block(self), 0, manager, self.place)
        self.run = RunContext(
            place=self.place,
            device=pool.get(self.place),
            pool=pool,
            program=_OneOp(self, manager),
            random=RANDOM,
            rules=expr.rules,
            limits=Limits.of(),
        )
        self.record: OpRecord | None = None
        self.check: ShapeCheck | None = None
        self.outputs: list[TensorMeta | None] = []

    def __repr__(self) -> str:
        return f"<BoundExpr {self.expr!r} of {', '.join(map(repr, self.metas)) or 'nothing'}>"

    @cached_property
    def program(self) -> ProgramDesc:
        """The program of this op alone."""
        return self._written(self.desc)

    def _written(self, op: OpDesc) -> ProgramDesc:
        """A program of one op, its variables declared as they were in the first call.

        Before that was computed, shapes and dtypes of the outputs are inferred by the op's rules.
        """
        program = ProgramDesc()
        block = program.blocks[0]
        outputs = self.outputs or [None] * len(self.names_out)
        names, metas = [*self.names_in, *self.names_out], [*self.metas, *outputs]
        for name, meta, shape in zip(names, metas, [*self._shapes, *[None] * len(outputs)], strict=True):
            if name == EMPTY_VAR or block.has_var(name):  # an output that is an input is declared already
                continue
            if meta is None:
                block.create_var(name)
                continue
            dtype = None if meta.name is None else dtype_enum(meta.name)
            var_type = KINDS.get(meta.container, VarType.RAW)
            block.create_var(name, type=var_type, dtype=dtype, shape=shape, lod_level=meta.lod_level)
        block.append_op(op)
        if not self.outputs:
            infer_op(op, block, self.expr.info, lod_is_known=True, guesses=False)
        return program

    def program_by_value(self) -> ProgramDesc:
        """The program of this op alone, with variables of their own for outputs that are computed in place."""
        op = self.desc.clone()
        program = self._written(op)
        block = program.blocks[0]
        for slot in self.expr.in_place.values():
            for i, name in enumerate(op.outputs.get(slot, ())):
                like = block.var(name)
                op.outputs[slot][i] = f"{slot} (output)[{i}]"
                block.create_var(op.outputs[slot][i], dtype=like.dtype, shape=like.shape, lod_level=like.lod_level)
        return program

    def first(self, args: Sequence[Tensor | None]) -> Outputs:
        """Run the first call, which decides `record` and `outputs`."""
        records: list[OpRecord] = []
        with recording(self.run, records):
            values = self.reference(args)
        if records:
            self.record, self.check = records[0], ShapeCheck(records[0])
            self.check.accept_recorded([held(a) for a in args])
        self.outputs = [None if v is None else meta_of_value(v, self.place, len(lod)) for v, lod in map(_bare, values)]
        return values

    @property
    def complete(self) -> bool:
        """Whether the first call showed the metas of all outputs, which later calls of these metas share."""
        return all(k is None or k.dtype is not None for k in self.outputs)

    @property
    def generated(self) -> bool:
        """Whether generated code can do what the reference path did, and may."""
        return self.record is not None and self.record.compilable and not self.expr.rules.plain

    def reference(self, args: Sequence[Tensor | None]) -> Outputs:
        """Values of the outputs, flat, by the reference path. Raises what the op raises, with the user's line."""
        scope = Scope()
        for name, arg in zip(self.names_in, args, strict=True):
            if name != EMPTY_VAR:
                scope.var(name).value = held(arg)
        try:
            with np.errstate(all="ignore"), self.run.device.activate():
                self.operator.run(scope, self.run)
        except OprackError as error:
            name_user_line(error)
            raise
        values = []
        for name in self.names_out:
            var = scope.find_var(name) if name != EMPTY_VAR else None
            values.append(None if var is None else var.value)
        return values


def _bare(value: Any) -> tuple[Any, Any]:
    return (value.array, value.lod) if isinstance(value, LoDTensor) else (value, ())
