"""SingleOp: one op, created without a program and run on a Scope at a Place; Fluid's OpRegistry::CreateOp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oprack.desc import OpDesc, ProgramDesc
from oprack.errors import InvalidArgumentError
from oprack.packs.manager import PackManager, default_manager
from oprack.runtime.kernel_operator import create_operator
from oprack.runtime.limits import Limits
from oprack.runtime.operator import OperatorBase
from oprack.runtime.prepared import PreparedProgram
from oprack.runtime.random import RandomState
from oprack.runtime.run_block import run_operators
from oprack.runtime.run_context import RunContext
from oprack.tensor import CPUPlace, Place, Scope
from oprack.types import AttrType

Names = Mapping[str, str | Sequence[str]]


class SingleOp:
    """An op that `create_op` made. It remembers its choices from run to run; one thread at a time may use it.

    Args:
        program: A program with this op alone.
        manager: The packs.
    """

    def __init__(self, program: ProgramDesc, manager: PackManager) -> None:
        self._program, self._manager = program, manager
        self._runs: dict[Place, tuple[OperatorBase, PreparedProgram]] = {}
        self._random = RandomState()
        self.desc = program.blocks[0].ops[0]
        self._operator(CPUPlace())  # checks the attributes

    @property
    def type(self) -> str:
        """The op's type."""
        return self.desc.type

    def run(self, scope: Scope, place: Place | None = None) -> None:
        """Read the inputs from `scope` and set the outputs there, or in the ancestor that has them.

        Raises what the op raises, as it does in a program.

        Args:
            place: Where it runs, by default the CPU; inputs elsewhere are copied there.
        """
        place = place or CPUPlace()
        operator, program = self._operator(place)
        pool = self._manager.device_contexts
        run = RunContext(
            place=place,
            device=pool.get(place),
            pool=pool,
            program=program,
            random=self._random,
            observers=self._manager.extensions.observers(),
            limits=Limits.of(),
        )
        with np.errstate(all="ignore"), run.device.activate():
            run_operators(run, [operator], scope)

    def _operator(self, place: Place) -> tuple[OperatorBase, PreparedProgram]:
        found = self._runs.get(place)
        if found is None or not found[1].is_current(self._manager, place):
            operator = create_operator(self.desc, self._program.blocks[0], 0, self._manager, place)
            found = self._runs[place] = (operator, PreparedProgram(self._program, self._manager, place))
        return found

    def __repr__(self) -> str:
        return f"<op {self.desc}>"


def create_op(
    type: str | OpDesc,
    inputs: Names | None = None,
    outputs: Names | None = None,
    attrs: Mapping[str, Any] | None = None,
    manager: PackManager | None = None,
) -> SingleOp:
    """Make an op by itself: `create_op("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0}).run(scope, CPUPlace())`.

    Args:
        type: The op type; or an OpDesc, which says the rest as well.
        inputs: Names of variables by input slot, or one name.
        outputs: Names of variables by output slot, or one name.
        attrs: Attributes, which are checked now; defaults are filled in.
        manager: The packs; None means all that are installed.

    Returns:
        The op, which can be run as often as wanted.

    Raises:
        UnknownOpError: No pack brings the op.
        AttributeValueError: An attribute is missing or out of range.
        InvalidArgumentError: The op has no such slot, or it runs a block of a program.
    """
    manager = manager or default_manager()
    if isinstance(type, OpDesc):
        if inputs or outputs or attrs:
            raise InvalidArgumentError(f"create_op({type}): an OpDesc has slots and attributes; expected nothing else")
        return create_op(type.type, type.inputs, type.outputs, type.attrs, manager)
    proto = manager.op_info(type).proto
    if any(a.type in (AttrType.BLOCK, AttrType.BLOCKS) for a in proto.attrs.values()):
        raise InvalidArgumentError(f"op {type} runs a block of a program; build a program for it, with oprack.layers")
    for what, given, declared in (("input", inputs, proto.inputs), ("output", outputs, proto.outputs)):
        unknown = [slot for slot in given or () if slot not in declared]
        if unknown:
            raise InvalidArgumentError(
                f"op {type}: {what} {', '.join(map(repr, unknown))} is no slot of it; expected "
                f"{', '.join(declared) or 'none'}"
            )
    program = ProgramDesc()
    program.blocks[0].append_op(type, dict(inputs or {}), dict(outputs or {}), dict(attrs or {}))
    return SingleOp(program, manager)
