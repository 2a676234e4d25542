"""Blocks of PIR and control flow: branches become conditional_block, loops become while."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.desc.reach import names_outside
from oprack.errors import CorruptModelError
from oprack.types import AttrType, VarType

from oprack_pir.composed import compose, composition
from oprack_pir.document import Block, Operation
from oprack_pir.encoding import TensorType
from oprack_pir.forms import Forms
from oprack_pir.table import row
from oprack_pir.values import Frame, Value, Variables, is_array, tensor_type


class BlockTranslator(Forms):
    """Writes the blocks of a program."""

    def __init__(self, program: ProgramDesc, version: int, variables: Variables) -> None:
        super().__init__(program, version, variables)
        self.forms |= {"pd_op.if": self._branch, "pd_op.while": self._loop}

    def block(self, block: Block, frame: Frame) -> list[Value]:
        """Write all operations; returns the values that the block yields."""
        for place, op in enumerate(block.ops):
            if str(op) == "cf.yield":
                if place != len(block.ops) - 1 or frame.outer is None:
                    raise CorruptModelError(
                        "cf.yield stands in the middle of a block; expected it at the end of a region"
                    )
                return [frame.find(number, "cf.yield") for number in op.operands]
            form = self.forms.get(str(op))
            found = None if form else row(op.name)
            if form is not None:
                form(op, frame)
            elif found is not None:
                self.ops.translate(op, found, frame)
            elif (steps := composition(op.name)) is not None:
                compose(op, steps, self.variables, frame)
        return []

    # Control flow -----------------------------------------------------------------------------------------------------
    def _branch(self, op: Operation, frame: Frame) -> None:
        """Two conditional blocks write the same variables: one where the condition is true, one where it is not."""
        if len(op.operands) != 1 or len(op.regions) != 2:
            raise CorruptModelError(
                f"op {op} has {len(op.operands)} operands and {len(op.regions)} regions; expected 1, 2"
            )
        condition = self._name(frame.find(op.operands[0], f"op {op}"), op)
        results = [self.variables.result(frame, number, type, op.name) for number, type in op.results]
        otherwise = self.variables.fresh(f"{condition}.not")
        self.variables.declare(
            frame, otherwise, TensorType(VarType.LOD_TENSOR, VarType.BOOL, self._dims(condition, frame))
        )
        frame.block.ops.append(OpDesc("logical_not", {"X": condition}, {"Out": otherwise}))
        for chosen, region in zip((condition, otherwise), op.regions, strict=True):
            inner = self._inner(frame)
            yields = self.block(region, inner)
            self._same_count(op, yields, results)
            self._assign(inner, yields, results)
            reads, writes = names_outside(inner.block)
            scope = self._scopes(frame)
            attrs = {"sub_block": inner.block.idx, "is_scalar_condition": True}
            inputs, outputs = {"Cond": [chosen], "Input": reads}, {"Out": writes, "Scope": [scope]}
            self.variables.hold(len(reads) + len(writes))
            kinds = {"sub_block": AttrType.BLOCK}
            frame.block.ops.append(OpDesc("conditional_block", inputs, outputs, attrs, kinds))
        for (number, _), value in zip(op.results, results, strict=True):
            frame.define(number, value, f"op {op}")

    def _loop(self, op: Operation, frame: Frame) -> None:
        """What goes from round to round lives in variables outside of the loop, which the end of each round writes."""
        where = f"op {op}"
        if len(op.regions) != 1 or len(op.operands) != len(op.results) + 1 != len(op.regions[0].args) + 1:
            raise CorruptModelError(
                f"{where} has {len(op.operands)} operands; expected a condition and one for each result"
            )
        region, before = op.regions[0], [frame.find(number, where) for number in op.operands]
        condition = self.variables.declare(frame, self.variables.fresh("while.condition"), tensor_type(before[0]))
        carried = [Value((condition,), before[0].type)]
        for (number, type), value in zip(op.results, before[1:], strict=True):
            # an array is written where it lies
            carried.append(value if is_array(value) else self.variables.result(frame, number, type, op.name))
        self._assign(frame, before, carried)
        inner = self._inner(frame)
        for (number, _), value in zip(region.args, carried[1:], strict=True):
            inner.define(number, value, where)
        yields = self.block(region, inner)
        self._same_count(op, yields, carried)
        self._assign(inner, yields, carried)
        reads, writes = names_outside(inner.block)
        self.variables.hold(len(reads) + len(writes))
        inputs = {"X": [name for name in reads if name != condition], "Condition": [condition]}
        outputs = {"Out": writes, "StepScopes": [self._scopes(frame)]}
        attrs, kinds = {"sub_block": inner.block.idx, "is_test": True}, {"sub_block": AttrType.BLOCK}
        frame.block.ops.append(OpDesc("while", inputs, outputs, attrs, kinds))
        for (number, _), value in zip(op.results, carried[1:], strict=True):
            frame.define(number, value, where)

    def _inner(self, frame: Frame) -> Frame:
        block = BlockDesc(self.program, len(self.program.blocks), frame.block.idx)
        self.program.blocks.append(block)
        return Frame(block, frame)

    def _assign(self, frame: Frame, values: Sequence[Value], targets: Sequence[Value]) -> None:
        """Copy values to variables, all at once: one that is another's target is read before it is written."""
        written = {target.names[0] for target in targets}
        pairs = [(value, str(target.names[0])) for value, target in zip(values, targets, strict=True)]
        pairs = [(value, name) for value, name in pairs if value.names != (name,)]
        for place, (value, name) in enumerate(pairs):
            if value.names[0] in written:
                spare = self.variables.fresh(f"{name}.next")
                self._copy(frame, value, self.variables.declare(frame, spare, tensor_type(value)))
                pairs[place] = Value((spare,), value.type), name
        for value, name in pairs:
            self._copy(frame, value, name)

    def _scopes(self, frame: Frame) -> str:
        name = self.variables.fresh("scopes")
        frame.block.vars[name] = VarDesc(name, VarType.STEP_SCOPES)
        return name

    def _dims(self, name: str, frame: Frame) -> tuple[int, ...]:
        var = frame.block.find_var_recursive(name)
        return () if var is None or var.shape is None else tuple(var.shape)

    def _same_count(self, op: Operation, yields: Sequence[Value], wanted: Sequence[Value]) -> None:
        if len(yields) != len(wanted):
            raise CorruptModelError(f"a block of op {op} yields {len(yields)} values; expected {len(wanted)}")
