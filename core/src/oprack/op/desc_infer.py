"""Shape and type rules on VarDescs: run for every op when a program is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError, NotFoundError, OpError, OprackError
from oprack.interruption import let_interruptions_pass
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.infer import Dims, IdentityContext, InferContext, InferShapeContext, InferVarTypeContext
from oprack.op.info import OpInfo
from oprack.op.raised import raised_by, told_of_stranger
from oprack.types import EMPTY_VAR, VarType, dtype_enum

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc, VarDesc


class _DescContext(InferContext):
    def __init__(
        self, op: OpDesc, block: BlockDesc, info: OpInfo, checked_attrs: Mapping[str, Any] | None = None
    ) -> None:
        """checked_attrs: the op's attributes where they were checked before."""
        self.op_type, self.proto = op.type, info.proto
        self._op, self._block = op, block
        self.attrs = checked_attrs if checked_attrs is not None else self._checked(op, info)

    @staticmethod
    def _checked(op: OpDesc, info: OpInfo) -> Mapping[str, Any]:
        given = {k: v for k, v in op.attrs.items() if k not in COMMON_ATTRS}
        return info.checker.check(given, op.var_attrs()) if info.checker else given

    def input_names(self, slot: str) -> Sequence[str]:
        names = self._op.inputs.get(slot)
        if names is None:
            self.require_declared(slot, self.proto.inputs, "input")
            return ()
        return [n for n in names if n != EMPTY_VAR]

    def output_names(self, slot: str) -> Sequence[str]:
        names = self._op.outputs.get(slot)
        if names is None:
            self.require_declared(slot, self.proto.outputs, "output")
            return ()
        return names

    def _in(self, slot: str, i: int) -> VarDesc:
        names = self.input_names(slot)
        if i >= len(names):
            raise InvalidArgumentError(
                f"op {self.op_type}: input {slot} has {len(names)} variables, but its rule reads number {i}; give it "
                "one"
            )
        return self._var(names[i], f"input {slot}[{i}]")

    def _out(self, slot: str, i: int) -> VarDesc | None:
        names = self.output_names(slot)
        if i >= len(names) or names[i] == EMPTY_VAR:
            return None
        return self._var(names[i], f"output {slot}[{i}]")

    def _var(self, name: str, role: str) -> VarDesc:
        var = self._block.find_var_recursive(name)
        if var is None:
            raise NotFoundError(
                f"op {self.op_type}: {role} is variable {name!r}, which block {self._block.idx} and its parents do not "
                "declare; create it with block.create_var(name, ...)"
            )
        return var

    def kind(self, slot: str, i: int = 0) -> VarType:
        return self._in(slot, i).type


class DescInferShapeContext(_DescContext, InferShapeContext):
    """Dims of VarDescs, -1 where each batch decides."""

    lod_is_known = False
    values: Mapping[str, Any] = {}

    def dim(self, slot: str, i: int = 0) -> Dims:
        return tuple(self._in(slot, i).shape or ())

    def set_dim(self, slot: str, dims: Sequence[int], i: int = 0) -> None:
        var = self._out(slot, i)
        if var is not None:
            var.shape = tuple(int(d) for d in dims)

    def lod_level(self, slot: str, i: int = 0) -> int:
        return self._in(slot, i).lod_level

    def share_lod(self, source: str, target: str, i: int = 0, j: int = 0) -> None:
        var, shared = self._out(target, j), self.has_input(source)
        if var is not None and shared:
            var.lod_level = self._in(source, i).lod_level

    def set_lod_level(self, slot: str, level: int, i: int = 0) -> None:
        var = self._out(slot, i)
        if var is not None:
            var.lod_level = level

    def lod(self, slot: str, i: int = 0) -> list[list[int]]:
        return []

    def value(self, slot: str, i: int = 0) -> Any:
        return self.values.get(self.input_names(slot)[i]) if self.values else None


class DescInferVarTypeContext(_DescContext, InferVarTypeContext):
    """Containers and dtypes of VarDescs."""

    def dtype(self, slot: str, i: int = 0) -> str:
        var = self._in(slot, i)
        name = var.dtype_name()
        if name is None:
            raise InvalidArgumentError(f"op {self.op_type}: input {slot}[{i}] (variable {var.name!r}) has no dtype")
        return name

    def set_dtype(self, slot: str, dtype: object, i: int | None = None) -> None:
        for k in range(self.output_count(slot)) if i is None else (i,):
            var = self._out(slot, k)
            if var is not None:
                var.dtype = dtype_enum(dtype)

    def set_kind(self, slot: str, kind: VarType, i: int | None = None) -> None:
        for k in range(self.output_count(slot)) if i is None else (i,):
            var = self._out(slot, k)
            if var is not None:
                var.type = kind


class DescIdentityContext(DescInferShapeContext, IdentityContext):
    """What a rule `identity(ctx)` may ask: attributes, slots, and dims, LoD levels and dtypes of the inputs."""

    def dtype(self, slot: str, i: int = 0) -> str:
        """dtype of input i of a slot; "" when its VarDesc does not say."""
        return self._in(slot, i).dtype_name() or ""


def infer_op(
    op: OpDesc,
    block: BlockDesc,
    info: OpInfo,
    *,
    lod_is_known: bool = False,
    guesses: bool = True,
    values: Mapping[str, Any] | None = None,
) -> None:
    """Set container, dtype, dims and LoD level of an op's outputs in the block.

    Raises what the op's rules raise, AttributeValueError, NotFoundError for a variable that is not declared, and
    OpError where a rule fails, as for inputs that it was not written for.

    Args:
        lod_is_known: The program is being written, so that an op may refuse an input that is declared without LoD.
        guesses: Whether rules take attributes as hints of what tensors hold that override them when the op runs.
        values: Arrays of inputs that are known before the program runs, by name, such as a shape.
    """
    for slot, names in op.inputs.items():
        if (known := info.proto.inputs.get(slot)) is not None and (few := known.too_few(len(names))):
            raise InvalidArgumentError(f"op {op.type}: input {few}")
    try:
        types = DescInferVarTypeContext(op, block, info)
        info.run_infer_var_type(types)
        if info.infer_shape is not None:
            context = DescInferShapeContext(op, block, info, types.attrs)
            context.lod_is_known, context.guesses, context.values = lod_is_known, guesses, values or {}
            info.infer_shape(context)
    except OprackError as error:
        error.args = (told_of_stranger(error, info), *error.args[1:])
        raise
    except Exception as error:
        let_interruptions_pass()
        inputs = ", ".join(
            f"{slot} {[list(var.shape or ()) for n in names if (var := block.find_var_recursive(n)) is not None]}"
            for slot, names in op.inputs.items()
        )
        where, _ = raised_by(error, info)
        raise OpError(
            f"op {op.type} (pack {info.pack}): its rules fail for inputs of shapes {inputs}: {type(error).__name__}: "
            f"{error}" + (f"\nraised{where}" if where else "")
        ) from error
