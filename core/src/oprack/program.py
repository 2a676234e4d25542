"""Program: a ProgramDesc with the everyday questions about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, Self

from oprack.desc import BlockDesc, ProgramDesc, VarDesc
from oprack.errors import BlockDepthError, PreconditionNotMetError
from oprack.python.records import dataclass

DEEPEST = 64
"""How deep blocks may be nested: each takes several frames of Python's stack."""


@dataclass
class ParameterInfo:
    """How a parameter is trained: what its VarDesc can't say, and no file keeps.

    Attributes:
        learning_rate: Factor on the learning rate of the optimizer.
        regularizer: Regularizer that goes before the optimizer's.
        need_clip: Whether gradient clipping takes it in.
        initializer: What filled it in the startup program.
    """

    learning_rate: float = 1.0
    regularizer: Any = None
    need_clip: bool = True
    initializer: Any = None


class Schedule(Protocol):
    """A number that Python computes before every run of a program, such as a learning rate that decays.

    Checkpoints save its state, so JSON must be able to hold it.
    """

    def __call__(self) -> float: ...

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of the schedule.

        Returns:
            Something that JSON can hold.
        """

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state.

        Args:
            state: What `state_dict` gave.
        """


class Program:
    """A program. `Program()` has one empty block; `Program.parse(data)` reads the bytes of a `.pdmodel` or `__model__`
    file.

    Beside the desc, a Program keeps only what matters while it is built.

    Args:
        desc: The ProgramDesc to wrap; default: a new one with an empty block.

    Attributes:
        desc: The ProgramDesc, which may be changed freely.
        parameters: ParameterInfo by name, for parameters that layers made.
        schedules: For each persistable variable that has one, the Schedule whose value Executor.run writes into it
            before the ops run.
        current_block_idx: Index of the block that ops are appended to.
    """

    __slots__ = ("__weakref__", "current_block_idx", "desc", "parameters", "schedules")

    def __init__(self, desc: ProgramDesc | None = None) -> None:
        self.desc = ProgramDesc() if desc is None else desc
        self.parameters: dict[str, ParameterInfo] = {}
        self.schedules: dict[str, Schedule] = {}
        self.current_block_idx = 0

    @classmethod
    def parse(cls, data: bytes | bytearray | memoryview) -> Self:
        """Read a program.

        Args:
            data: The bytes of a `.pdmodel` or `__model__` file.

        Returns:
            The program.

        Raises:
            CorruptModelError: The bytes are no program.
            BlockCycleError: Its blocks can't be walked.
        """
        return cls(ProgramDesc.parse(data))

    def serialize(self) -> bytes:
        """The bytes of a `.pdmodel` file."""
        return self.desc.serialize()

    @property
    def blocks(self) -> list[BlockDesc]:
        """All blocks, by index."""
        return self.desc.blocks

    def block(self, index: int) -> BlockDesc:
        """Block by index.

        Raises:
            NotFoundError: When there is none.
        """
        return self.desc.block(index)

    def global_block(self) -> BlockDesc:
        """Block 0, where the program starts."""
        return self.desc.blocks[0]

    def current_block(self) -> BlockDesc:
        """The block that is being built: block 0, or the innermost one that `create_block` opened."""
        return self.desc.blocks[self.current_block_idx]

    def create_block(self, parent: BlockDesc | None = None) -> BlockDesc:
        """Open a new block; ops go there until `rollback`.

        Args:
            parent: The block around it; default: the current one.

        Returns:
            The new block.

        Raises:
            BlockDepthError: Blocks would be nested too deep for the program to run.
        """
        parent = self.current_block() if parent is None else parent
        depth, around = 2, parent.parent
        while around is not None:
            depth, around = depth + 1, around.parent
        if depth > DEEPEST:
            raise BlockDepthError(
                f"blocks would be nested {depth} deep here; expected at most {DEEPEST}: write a loop in place of a "
                "function that calls itself, or put conditions one behind the other"
            )
        block = self.desc.append_block(parent)
        self.current_block_idx = block.idx
        return block

    def rollback(self) -> BlockDesc:
        """Go back to the parent of the current block.

        Raises:
            PreconditionNotMetError: The current block is block 0.
        """
        parent = self.current_block().parent
        if parent is None:
            raise PreconditionNotMetError("rollback: block 0 has no parent; call it once for each create_block")
        self.current_block_idx = parent.idx
        return parent

    def list_vars(self) -> list[VarDesc]:
        """All variables, block by block."""
        return [var for block in self.desc.blocks for var in block.vars.values()]

    def op_types(self) -> set[str]:
        """Types of all ops, those in sub-blocks included."""
        return {op.type for block in self.desc.blocks for op in block.ops}

    def all_parameters(self) -> list[VarDesc]:
        """Parameters of block 0, in order of creation."""
        return [var for var in self.global_block().vars.values() if var.is_parameter]

    def clone(self, for_test: bool = False) -> Self:
        """An independent copy.

        Args:
            for_test: Whether to leave gradient and update ops out, and set `is_test` where an op has it.

        Returns:
            The copy.
        """
        program = type(self)(self.desc.clone())
        program.parameters = {name: replace(info) for name, info in self.parameters.items()}
        program.schedules = dict(self.schedules)
        program.current_block_idx = self.current_block_idx
        if for_test:
            _to_inference(program.desc)
            kept = program.global_block().vars
            program.schedules = {name: s for name, s in self.schedules.items() if name in kept}
        return program

    def __str__(self) -> str:
        return str(self.desc)

    def __repr__(self) -> str:
        return f"<Program: {len(self.desc.blocks)} blocks, {sum(len(b.ops) for b in self.desc.blocks)} ops>"


# bits of attribute op_role: backward, optimize, learning rate schedule
_TRAINING = 1 | 2 | 16


def _to_inference(desc: ProgramDesc) -> None:
    dropped: set[str] = set()
    for block in desc.blocks:
        kept = []
        for op in block.ops:
            if op.attrs.get("op_role", 0) & _TRAINING:
                dropped.update(op.input_arg_names(), op.output_arg_names())
                continue
            if "is_test" in op.attrs:
                op.set_attr("is_test", True)
            kept.append(op)
        block.ops = kept
    for block in desc.blocks:
        for op in block.ops:
            dropped.difference_update(op.input_arg_names(), op.output_arg_names())
    for block in desc.blocks:
        for name in dropped.intersection(block.vars):
            block.remove_var(name)
