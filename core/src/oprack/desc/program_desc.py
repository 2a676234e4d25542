"""ProgramDesc and its BlockDescs: variables and ops in order; a name that a block lacks is looked up in its parent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from oprack.desc.op_desc import OpDesc
from oprack.desc.var_desc import VarDesc
from oprack.errors import BlockCycleError, NotFoundError, did_you_mean


class BlockDesc:
    """A block of a program.

    Args:
        idx: Its position in the program.
        parent_idx: -1 for block 0.
        forward_block_idx: For a gradient block, the index of the block that it differentiates; else -1.
    """

    __slots__ = ("_explicit", "_extra", "forward_block_idx", "idx", "ops", "parent_idx", "program", "vars")

    def __init__(self, program: ProgramDesc, idx: int, parent_idx: int = -1, forward_block_idx: int = -1) -> None:
        self.program = program
        self.idx = idx
        self.parent_idx = parent_idx
        self.forward_block_idx = forward_block_idx
        self.vars: dict[str, VarDesc] = {}
        self.ops: list[OpDesc] = []
        self._explicit = 0
        self._extra: dict[tuple[Any, ...], bytes] | None = None

    @property
    def parent(self) -> BlockDesc | None:
        return self.program.blocks[self.parent_idx] if self.parent_idx >= 0 else None

    @property
    def forward_block(self) -> BlockDesc | None:
        return self.program.blocks[self.forward_block_idx] if self.forward_block_idx >= 0 else None

    def ancestors(self) -> Iterator[BlockDesc]:
        """The blocks in which names are looked up, in order: this one, then its parents.

        A gradient block looks in its forward block before its parents, since the gradient op runs it inside the scopes
        that the forward op left.
        """
        # A block may be reached as a parent and as a forward block.
        seen: set[int] = set()
        pending: list[BlockDesc] = [self]
        while pending:
            block = pending.pop()
            if block.idx not in seen:
                seen.add(block.idx)
                yield block
                pending += [b for b in (block.parent, block.forward_block) if b is not None]

    # Variables ------------------------------------------------------------------------------------------------------
    def find_var(self, name: str) -> VarDesc | None:
        """The variable of this very block, or None."""
        return self.vars.get(name)

    def has_var(self, name: str) -> bool:
        return name in self.vars

    def find_var_recursive(self, name: str) -> VarDesc | None:
        """The variable of this block or the nearest ancestor, or None."""
        var = self.vars.get(name)
        if var is not None:  # so nearly always, and without the generator below
            return var
        return next((block.vars[name] for block in self.ancestors() if name in block.vars), None)

    def var(self, name: str) -> VarDesc:
        """As find_var_recursive, but raises NotFoundError that lists names alike."""
        var = self.find_var_recursive(name)
        if var is None:
            near = did_you_mean(name, [n for block in self.ancestors() for n in block.vars])
            raise NotFoundError(f"variable {name!r} is neither in block {self.idx} nor in a parent of it{near}")
        return var

    def create_var(self, name: str, **fields: Any) -> VarDesc:
        """The variable `name` of this block; created when there is none.

        Args:
            fields: Fields of the VarDesc to set, whether it is new or not.
        """
        new = VarDesc(name, **fields)
        var = self.vars.setdefault(name, new)
        if var is not new:
            for field in fields:
                setattr(var, field, getattr(new, field))
        return var

    def remove_var(self, name: str) -> None:
        """Remove a variable of this block; nothing happens when it is absent."""
        self.vars.pop(name, None)

    def rename_var(self, old: str, new: str) -> None:
        """Rename a variable of this block, in the block's ops as well (not in those of sub-blocks).

        Raises:
            NotFoundError: When the block does not have it.
        """
        if old not in self.vars:
            raise NotFoundError(f"block {self.idx} has no variable {old!r} to rename to {new!r}")
        self.vars[old].name = new
        # The dict is built anew to keep the order of the variables, which is that of the file.
        self.vars = {var.name: var for var in self.vars.values()}
        for op in self.ops:
            op.rename_input(old, new)
            op.rename_output(old, new)

    # Ops ------------------------------------------------------------------------------------------------------------
    def append_op(
        self,
        op: OpDesc | str,
        inputs: Mapping[str, Sequence[str] | str] | None = None,
        outputs: Mapping[str, Sequence[str] | str] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> OpDesc:
        """Add an op at the end: an OpDesc, or its type, slots and attributes.

        A block is data, as in a file: nothing is looked up or inferred, so that programs can be edited whose ops no
        installed pack brings. `oprack.layers.append_op(type, inputs, outputs, attrs, program=..., block=...)` checks
        the op, its slots and attributes, fills in defaults, and infers shapes and dtypes of its outputs.
        """
        return self.insert_op(len(self.ops), op, inputs, outputs, attrs)

    def prepend_op(
        self,
        op: OpDesc | str,
        inputs: Mapping[str, Sequence[str] | str] | None = None,
        outputs: Mapping[str, Sequence[str] | str] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> OpDesc:
        """Add an op at the front."""
        return self.insert_op(0, op, inputs, outputs, attrs)

    def insert_op(
        self,
        index: int,
        op: OpDesc | str,
        inputs: Mapping[str, Sequence[str] | str] | None = None,
        outputs: Mapping[str, Sequence[str] | str] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> OpDesc:
        """Add an op before position `index`."""
        if isinstance(op, str):
            op = OpDesc(op, inputs, outputs, attrs)
        self.ops.insert(index, op)
        return op

    def remove_op(self, op: OpDesc | int) -> None:
        """Remove an op, which is an OpDesc or a position.

        Raises:
            NotFoundError: When it is not in the block.
        """
        if isinstance(op, int):
            if not -len(self.ops) <= op < len(self.ops):
                raise NotFoundError(f"block {self.idx} has {len(self.ops)} ops, so there is none at position {op}")
            del self.ops[op]
            return
        for i, other in enumerate(self.ops):
            if other is op:
                del self.ops[i]
                return
        raise NotFoundError(f"op {op.type} is not in block {self.idx}; remove it from the block that it was added to")

    def clone(self, program: ProgramDesc) -> BlockDesc:
        """An independent copy that belongs to `program`."""
        block = BlockDesc(program, self.idx, self.parent_idx, self.forward_block_idx)
        block.vars = {name: var.clone() for name, var in self.vars.items()}
        block.ops = [op.clone() for op in self.ops]
        block._explicit = self._explicit
        block._extra = self._extra and dict(self._extra)
        return block

    def __str__(self) -> str:
        head = f"block {self.idx}" + (f" (parent {self.parent_idx})" if self.parent_idx >= 0 else "")
        lines = [head + ":"] + [f"  var {var}" for var in self.vars.values()] + [f"  {op}" for op in self.ops]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<BlockDesc {self.idx}: {len(self.ops)} ops, {len(self.vars)} vars>"


class ProgramDesc:
    """The blocks of a program and the versions it was saved with.

    A new program has one empty block.

    Attributes:
        blocks: Blocks by index; a run starts in block 0.
        version: Version of the framework that saved the program, for example 2006002 for 2.6.2; 0 when the file does
            not say (Fluid before 1.3).
        op_version_map: Op type -> version of the op's definition when the program was saved.
        op_sources: Op type -> (distribution, version of it) that brought the op when the program was saved, where the
            file says so; Paddle's do not.
    """

    __slots__ = ("_explicit", "_extra", "blocks", "op_sources", "op_version_map", "version")

    def __init__(self) -> None:
        self.blocks = [BlockDesc(self, 0)]
        self.version = 0
        self.op_version_map: dict[str, int] = {}
        self.op_sources: dict[str, tuple[str, str]] = {}
        self._explicit = 0
        self._extra: dict[tuple[Any, ...], bytes] | None = None

    @classmethod
    def parse(cls, data: bytes | bytearray | memoryview) -> Self:
        """Parse the contents of a `.pdmodel` or `__model__` file.

        Raises:
            CorruptModelError: When the bytes are not a serialized program.
            BlockCycleError: When blocks contain each other or a block index is out of range.
        """
        from oprack.desc.wire import read_program

        program = cls()
        read_program(data, program)
        check_blocks(program)
        return program

    def serialize(self) -> bytes:
        """Serialize to the bytes of a `.pdmodel` file; fields that `parse` did not know are written back unchanged.

        Raises:
            AttributeValueError: When an attribute's value does not have the attribute's type.
        """
        from oprack.desc.wire import write_program

        return write_program(self)

    def block(self, index: int) -> BlockDesc:
        """Return the block of an index.

        Raises:
            NotFoundError: When the program has no such block.
        """
        if not 0 <= index < len(self.blocks):
            raise NotFoundError(f"block {index} does not exist; the program has blocks 0 to {len(self.blocks) - 1}")
        return self.blocks[index]

    def append_block(self, parent: BlockDesc, forward_block: BlockDesc | None = None) -> BlockDesc:
        """Append a new, empty block.

        Args:
            parent: The block that contains it.
            forward_block: The block whose gradient it computes; None for a block that computes no gradient.
        """
        block = BlockDesc(self, len(self.blocks), parent.idx, -1 if forward_block is None else forward_block.idx)
        self.blocks.append(block)
        return block

    def clone(self) -> Self:
        """An independent copy."""
        program = type(self)()
        program.blocks = [block.clone(program) for block in self.blocks]
        program.version = self.version
        program.op_version_map = dict(self.op_version_map)
        program.op_sources = dict(self.op_sources)
        program._explicit = self._explicit
        program._extra = self._extra and dict(self._extra)
        return program

    def __str__(self) -> str:
        return "\n".join(str(block) for block in self.blocks)

    def __repr__(self) -> str:
        return f"<ProgramDesc: {len(self.blocks)} blocks, {sum(len(b.ops) for b in self.blocks)} ops>"


def check_blocks(program: ProgramDesc) -> None:
    """Check that the blocks form trees, in time and memory linear in the number of blocks and ops.

    Raises:
        BlockCycleError: An index is out of range, or a block is its own ancestor or sub-block.
    """
    count = len(program.blocks)
    sub_blocks: list[list[int]] = []
    for position, block in enumerate(program.blocks):
        if block.idx != position:
            raise BlockCycleError(f"block at position {position} says that its idx is {block.idx}; expected {position}")
        # Block 0 alone has no parent; Paddle writes -1 there.
        if not (0 <= block.parent_idx < count or (block.parent_idx == -1 and position == 0)):
            raise BlockCycleError(
                f"block {position}: parent_idx is {block.parent_idx}; expected "
                + ("-1" if position == 0 else f"one of the blocks 0 to {count - 1}")
            )
        if not -1 <= block.forward_block_idx < count:
            raise BlockCycleError(
                f"block {position}: forward_block_idx is {block.forward_block_idx}; expected -1 to {count - 1}"
            )
        sub_blocks.append([])
        for op in block.ops:
            for attr, indices in op.block_attrs().items():
                for index in indices:
                    if not 0 <= index < count:
                        raise BlockCycleError(
                            f"block {position}: attribute {attr!r} of op {op.type} names block {index}; expected one "
                            f"of the blocks 0 to {count - 1}"
                        )
                sub_blocks[-1] += indices
    _check_acyclic([[b.parent_idx] if b.parent_idx >= 0 else [] for b in program.blocks], "parents")
    _check_acyclic(sub_blocks, "sub-blocks")


def _check_acyclic(targets: list[list[int]], relation: str) -> None:
    """Search depth-first for a cycle.

    The stack is explicit because an untrusted file decides how deep the search goes: recursion could overflow.
    """
    unvisited, on_path, done = 0, 1, 2
    state = [unvisited] * len(targets)
    for start in range(len(targets)):
        if state[start] != unvisited:
            continue
        state[start] = on_path
        path = [start]
        pending = [iter(targets[start])]
        while path:
            target = next(pending[-1], None)
            if target is None:
                state[path.pop()] = done
                pending.pop()
            elif state[target] == on_path:
                cycle = [*path[path.index(target) :], target]
                shown = " -> ".join(map(str, cycle if len(cycle) <= 8 else [*cycle[:8], "..."]))
                raise BlockCycleError(f"{relation} of the blocks run in a circle: {shown}; expected a tree of blocks")
            elif state[target] == unvisited:
                state[target] = on_path
                path.append(target)
                pending.append(iter(targets[target]))
