"""Operations of PIR that are no op of Fluid by themselves: parameters, inputs and outputs, constants, lists."""

from __future__ import annotations

from collections.abc import Callable

from oprack.desc import OpDesc, ProgramDesc
from oprack.errors import CorruptModelError, UnimplementedError
from oprack.types import VarType

from oprack_pir.composed import composition
from oprack_pir.constants import constant_op, full_op, list_op, of_full, of_list
from oprack_pir.document import Operation
from oprack_pir.encoding import ListType, TensorType
from oprack_pir.table import row
from oprack_pir.translate import OpTranslator
from oprack_pir.values import Frame, Value, Variables, tensor_type


class Forms:
    """Writes what stands in one block; blocks.py adds the blocks within.

    Attributes:
        feeds, fetches: Names of the inputs and outputs, in order.
        constants: Variables that hold constants -> the op that makes each.
    """

    def __init__(self, program: ProgramDesc, version: int, variables: Variables) -> None:
        self.program, self.variables = program, variables
        self.ops = OpTranslator(variables, version)
        self.feeds: list[str] = []
        self.fetches: dict[int, str] = {}
        self.constants: dict[str, OpDesc] = {}
        self.forms: dict[str, Callable[[Operation, Frame], None]] = {
            "builtin.parameter": self._parameter,
            "builtin.combine": self._combine,
            "builtin.split": self._split,
            "builtin.slice": self._element,
            "pd_op.data": self._data,
            "pd_op.feed": self._data,
            "pd_op.fetch": self._fetch,
            "pd_op.full": self._full,
            "pd_op.full_int_array": self._full_int_array,
            "pd_op.assign_value": self._assign_value,
            "pd_op.assign_value_": self._assign_value,
            "pd_op.create_array": self._create_array,
            "pd_op.create_array_like": self._create_array,
        }

    def knows(self, op: Operation) -> bool:
        """Whether an operation can be written."""
        if str(op) in self.forms or str(op) == "cf.yield":
            return True
        return op.dialect == "pd_op" and (row(op.name) is not None or composition(op.name) is not None)

    # What enters and leaves -------------------------------------------------------------------------------------------
    def _parameter(self, op: Operation, frame: Frame) -> None:
        number, type = self._single(op)
        name = self.variables.claim(op.attrs["name"], "a parameter")
        self._outermost(op, frame)
        self.variables.declare(frame, name, type)
        var = frame.block.vars[name]
        var.persistable = var.is_parameter = op.attrs["persistable"]
        var.stop_gradient = True
        frame.define(number, Value((name,), type), f"parameter {name!r}")

    def _data(self, op: Operation, frame: Frame) -> None:
        number, type = self._single(op)
        self._outermost(op, frame)
        given = op.attrs.get("name")
        name = self.variables.claim(given if isinstance(given, str) else "", "an input (op pd_op.data)")
        self.variables.declare(frame, name, type)
        frame.block.vars[name].stop_gradient = True
        frame.define(number, Value((name,), type), f"input {name!r}")
        self.feeds.append(name)

    def _fetch(self, op: Operation, frame: Frame) -> None:
        self._outermost(op, frame)
        if len(op.operands) != 1:
            raise CorruptModelError(f"op {op} has {len(op.operands)} operands; expected one")
        value = frame.find(op.operands[0], f"op {op}")
        name, wanted = self._name(value, op), op.attrs.get("name")
        col = op.attrs.get("col", len(self.fetches))
        if type(col) is not int or col in self.fetches:
            raise CorruptModelError(f"op {op} of {name!r} has col {col!r}; expected another int than those before")
        if name != wanted:  # an input, a parameter, what an op in place wrote, or something that is fetched twice
            target = self.variables.wanted(op.operands[0])
            if target is None:
                target = self.variables.fresh(wanted if isinstance(wanted, str) and wanted else f"{name}.fetch")
            self._copy(frame, value, self.variables.declare(frame, target, tensor_type(value)))
            name = target
        self.fetches[col] = name

    # Constants and lists ----------------------------------------------------------------------------------------------
    def _full(self, op: Operation, frame: Frame) -> None:
        number, _ = self._single(op)
        constant = of_full(op)
        shape, dtype = tuple(op.attrs["shape"]), op.attrs["dtype"]
        value = self.variables.result(frame, number, TensorType(VarType.LOD_TENSOR, dtype, shape), op.name)
        name = str(value.names[0])
        made = full_op(shape, op.attrs["value"], dtype, name)
        self._keep(frame, name, made, number, Value(value.names, value.type, constant), op)

    def _full_int_array(self, op: Operation, frame: Frame) -> None:
        number, _ = self._single(op)
        constant = of_list(op)
        self.variables.hold(len(constant.numbers))
        type = TensorType(VarType.LOD_TENSOR, constant.dtype, (len(constant.numbers),))
        value = self.variables.result(frame, number, type, op.name)
        name = str(value.names[0])
        made = constant_op(constant, type.shape, name)
        self._keep(frame, name, made, number, Value(value.names, type, constant), op)

    def _keep(self, frame: Frame, name: str, made: OpDesc, number: int, value: Value, op: Operation) -> None:
        frame.define(number, value, f"op {op}")
        frame.block.ops.append(made)
        self.constants[name] = made

    def _assign_value(self, op: Operation, frame: Frame) -> None:
        number, type = self._single(op)
        shape, values, dtype = (op.attrs.get(name) for name in ("shape", "values", "dtype"))
        if not isinstance(shape, list) or not isinstance(values, list) or dtype is None:
            raise CorruptModelError(f"op {op} has shape {shape!r:.80} and dtype {dtype!r}; expected both, and values")
        where = f"op {op}"
        value = (
            frame.find(op.operands[0], where) if op.operands else self.variables.result(frame, number, type, op.name)
        )
        frame.define(number, self.variables.overwrite(Value(value.names, type)), where)
        frame.block.ops.append(list_op(values, shape, dtype, self._name(value, op)))

    def _create_array(self, op: Operation, frame: Frame) -> None:
        """An array is there once something is written to it."""
        number, type = self._single(op)
        frame.define(number, self.variables.result(frame, number, type, "array"), f"op {op}")

    def _combine(self, op: Operation, frame: Frame) -> None:
        number, type = op.results[0] if len(op.results) == 1 else (0, None)
        where = f"op {op}"
        items = [frame.find(operand, where) for operand in op.operands]
        if not isinstance(type, ListType) or any(len(item.names) != 1 or item.items for item in items):
            raise CorruptModelError(f"{where} gives {type!r:.80} of {len(items)} values; expected a list of tensors")
        self.variables.hold(len(items))
        names = tuple(name for item in items for name in item.names)
        frame.define(number, Value(names, type, items=tuple(items)), where)

    def _split(self, op: Operation, frame: Frame) -> None:
        where = f"op {op}"
        whole = self._list(op, frame)
        if len(whole) != len(op.results):
            raise CorruptModelError(
                f"{where} takes a list of {len(whole)} apart into {len(op.results)}; expected as many"
            )
        for (number, _), item in zip(op.results, whole, strict=True):
            if item is not None:
                frame.define(number, item, where)

    def _element(self, op: Operation, frame: Frame) -> None:
        whole, index = self._list(op, frame), op.attrs.get("index")
        chosen = whole[index] if type(index) is int and 0 <= index < len(whole) else None
        if chosen is None:
            raise CorruptModelError(f"op {op} takes element {index!r} of a list of {len(whole)}; expected one of them")
        frame.define(op.results[0][0] if op.results else 0, chosen, f"op {op}")

    def _list(self, op: Operation, frame: Frame) -> list[Value | None]:
        value = frame.find(op.operands[0] if op.operands else 0, f"op {op}")
        if not isinstance(value.type, ListType):
            raise CorruptModelError(f"op {op} reads {value.names!r:.80}; expected a list of tensors")
        if value.items:
            return list(value.items)
        return [
            None if name is None else Value((name,), type)
            for name, type in zip(value.names, value.type.items, strict=True)
        ]

    def _copy(self, frame: Frame, value: Value, target: str) -> None:
        if len(value.names) != 1 or value.items or value.names[0] is None:
            raise UnimplementedError(
                f"a list of {len(value.names)} tensors leaves a block as {target!r}; Fluid's blocks give single "
                "tensors: return its elements one by one, and export the model again"
            )
        frame.block.ops.append(OpDesc("assign", {"X": value.names[0]}, {"Out": target}))

    # Small questions --------------------------------------------------------------------------------------------------
    def _single(self, op: Operation) -> tuple[int, TensorType]:
        if len(op.results) != 1 or not isinstance(op.results[0][1], TensorType):
            raise CorruptModelError(f"op {op} has the results {op.results!r:.200}; expected one tensor")
        number, type = op.results[0]
        assert isinstance(type, TensorType)
        return number, type

    def _name(self, value: Value, op: Operation) -> str:
        if len(value.names) != 1 or value.names[0] is None or value.items:
            raise CorruptModelError(f"op {op} reads a list of {len(value.names)} tensors; expected one tensor")
        return value.names[0]

    def _outermost(self, op: Operation, frame: Frame) -> None:
        if frame.outer is not None:
            raise CorruptModelError(f"op {op} stands in a block of control flow; expected it in the outermost block")
