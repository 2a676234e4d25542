"""Prepared programs: operators are made once for each program and place, and remember their choices.

A block of one runs through its plan, or op by op; `create_op` makes a program of one op.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from oprack.cache import Cache
from oprack.desc import OpDesc, ProgramDesc
from oprack.errors import InvalidArgumentError
from oprack.kernel import ANY_KERNEL, PLAIN_KERNELS
from oprack.packs.installed.resolve import import_object
from oprack.packs.manager import PackManager, default_manager
from oprack.python.logs import get_logger
from oprack.runtime.checks import Limits
from oprack.runtime.feed_fetch import FeedOps
from oprack.runtime.kernel_operator import create_operator
from oprack.runtime.liveness import Dying, check_nesting, last_uses
from oprack.runtime.operator import OperatorBase
from oprack.runtime.plan.block_plan import BlockPlan
from oprack.runtime.profiler import in_reference
from oprack.runtime.run_context import RandomState, RunContext
from oprack.tensor import CPUPlace, LoDTensor, Place, Scope, ShapeOnly, Variable
from oprack.types import EMPTY_VAR, PER_RUN_KINDS, AttrType

if TYPE_CHECKING:
    from oprack.desc import BlockDesc

_LOG = get_logger(__name__)
# How many different fetch lists of a block keep their plans and liveness; bytes of each op of a plan, as measured.
_FETCH_LISTS, _PLANNED = 64, 300
# Bytes of each op of a prepared program, with its kernels' choices, as measured.
_PREPARED = 8000


class PreparedBlock:
    """Operators of one block, and the names of its variables that are local to a run.

    Args:
        with_feed_fetch: Whether feed and fetch ops are among them; without, values are set and read as variables.

    Attributes:
        persistable: Names of the variables that live on after a run.
    """

    def __init__(self, block: BlockDesc, manager: Any, place: Place, with_feed_fetch: bool = True) -> None:
        self.block = block
        self.operators: list[OperatorBase] = []
        for i, op in enumerate(block.ops):
            if op.type in ("feed", "fetch") and not with_feed_fetch:
                names = op.output_arg_names() if op.type == "feed" else op.input_arg_names()
                _LOG.debug("op %s of block %d is skipped; variable %s is the caller's", op.type, block.idx, names)
                continue
            self.operators.append(create_operator(op, block, i, manager, place))
        # Both by what is read after the run, which decides what may be freed.
        self._plans = Cache(_FETCH_LISTS, "plans")
        self.feeds = FeedOps.of(block)
        self._dying = Cache(_FETCH_LISTS)
        self._local = [v.name for v in block.vars.values() if not v.persistable or v.type in PER_RUN_KINDS]
        persistable = [v.name for v in block.vars.values() if v.persistable and v.type not in PER_RUN_KINDS]
        self.persistable = dict.fromkeys(persistable)

    def plan(self, keep: Sequence[str] | None) -> BlockPlan:
        """The block's plan when the local variables in `keep` are read afterwards; None = all of them."""
        key = None if keep is None else tuple(keep)
        found: BlockPlan | None = self._plans[key]
        if found is None:
            found = BlockPlan(self.block, self.operators, key)
            self._plans.keep(key, found, _PLANNED * len(self.operators))
        return found

    def dying(self, keep: Sequence[str]) -> list[Dying]:
        """Per operator, what nobody needs afterwards; the variables in `keep` are needed to the end."""
        key = tuple(keep)
        found: list[Dying] | None = self._dying[key]
        if found is None:
            found = self._dying[key] = last_uses(self.operators, self.block, key)
        return found

    def forget_parameters(self) -> None:
        """Let go of the parameters of earlier runs, which plans remember."""
        for plan in list(self._plans.values()):
            plan.forget_parameters()

    def create_variables(self, scope: Scope) -> None:
        """Local variables in `scope`; persistable ones in its root, unless an ancestor has them."""
        for name in self._local:
            scope.var(name)
        self.create_persistable(scope)

    def create_persistable(self, scope: Scope) -> None:
        """Persistable variables alone: a plan creates the local ones that it needs."""
        if not scope.lacks(self.persistable.keys()):
            return  # as in every run but the first
        for name in self.persistable:
            if scope.find_var(name) is None:
                scope.root().var(name)


class PreparedProgram:
    """Blocks of a program, each prepared on first use.

    Args:
        block_id: The block that a run starts with.
        with_feed_fetch: Whether its feed and fetch ops run.
    """

    def __init__(
        self, desc: ProgramDesc, manager: Any, place: Place, block_id: int = 0, with_feed_fetch: bool = True
    ) -> None:
        # What the caller has is kept as well, since caches know it by its id.
        self.source, self.manager, self.place = desc, manager, place
        manager.adopt(desc.op_sources)
        self.desc = desc = prepared_desc(desc, manager)
        self.block_id, self.with_feed_fetch = block_id, with_feed_fetch
        if not 0 <= block_id < len(desc.blocks):
            raise InvalidArgumentError(f"block {block_id}: the program has blocks 0 to {len(desc.blocks) - 1}")
        # A pack that was loaded, blocked or registered since may bring other kernels, so that what was prepared is of
        # no use.
        self.packs_revision = manager.revision
        self._blocks: dict[int, PreparedBlock] = {}
        check_nesting(desc)
        op_types = {op.type for block in desc.blocks for op in block.ops}
        manager.require_ops(op_types, desc.op_version_map, desc.op_sources)

    def __repr__(self) -> str:
        return f"<PreparedProgram of {len(self.desc.blocks[self.block_id].ops)} ops at {self.place!r}>"

    def is_current(self, manager: Any, place: Place) -> bool:
        """Whether packs and place are still those that it was prepared for."""
        same_place = place is self.place or place == self.place
        return same_place and manager is self.manager and manager.revision == self.packs_revision

    @cached_property
    def read_names(self) -> list[str]:
        """Variables that ops of any block read."""
        ops = (op for block in self.desc.blocks for op in block.ops if op.type != "feed")
        return list(dict.fromkeys(name for op in ops for name in op.input_arg_names() if name != EMPTY_VAR))

    @cached_property
    def last_readers(self) -> dict[tuple[str, str], tuple[int, int]]:
        """For each type of op and variable that such an op reads, (block, position) of the last one that does."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for block in self.desc.blocks:
            for i, op in enumerate(block.ops):
                found.update(dict.fromkeys(((op.type, name) for name in op.input_arg_names()), (block.idx, i)))
        return found

    def complete(self) -> Self:
        """Prepare every block now. Raises AttributeValueError that names the op, and what packs raise."""
        for index in range(len(self.desc.blocks)):
            self.block(index)
        return self

    def block(self, index: int) -> PreparedBlock:
        found = self._blocks.get(index)
        if found is None:
            # The caller stands for the feed and fetch ops of the main block alone.
            with_feed_fetch = self.with_feed_fetch or index != self.block_id
            found = PreparedBlock(self.desc.blocks[index], self.manager, self.place, with_feed_fetch)
            self._blocks[index] = found
        return found

    def forget_parameters(self) -> None:
        """Let go of the parameters of earlier runs: who alone has the memory of one may write to it."""
        for block in list(self._blocks.values()):
            block.forget_parameters()

    @property
    def main(self) -> PreparedBlock:
        """The block that a run starts with."""
        return self.block(self.block_id)


def program_bytes(desc: ProgramDesc) -> int:
    """About how many bytes a prepared program takes, for `oprack.cache`: with its operators, without plans."""
    return _PREPARED * sum(len(block.ops) for block in desc.blocks)


_EDITS = attrgetter("edits")
# What decides in which scope a variable lives, what it holds, and what it may be fed with.
_DECLARED = attrgetter("name", "persistable", "type", "dtype", "shape", "lod_level", "need_check_feed")


def _snapshot(desc: ProgramDesc) -> list[Any]:
    """What a prepared program depends on. It holds the ops themselves, so that no new op can be taken for one."""
    found: list[Any] = []
    for block in desc.blocks:
        found.append(block)
        found += map(_DECLARED, block.vars.values())
        found += map(_EDITS, block.ops)
        found += block.ops
    return found


class PreparedCache:
    """The last prepared programs; one whose place, packs, ops or variables changed since is prepared again.

    It is bounded, since an entry keeps its program alive. The lock is held while a program is prepared, so that two
    threads that run the same program do not both prepare it.
    """

    def __init__(self) -> None:
        self._entries = Cache(32, "programs")  # of a snapshot and a PreparedProgram each
        self._lock = threading.Lock()

    def get(
        self, desc: ProgramDesc, manager: Any, place: Place, block_id: int = 0, with_feed_fetch: bool = True
    ) -> PreparedProgram:
        # The entry holds the program, so that its id can't become another's while the entry is there.
        key, now = (id(desc), block_id, with_feed_fetch), _snapshot(desc)
        found: tuple[list[Any], PreparedProgram] | None = self._entries[key]
        if found is not None and found[0] == now and found[1].is_current(manager, place):
            return found[1]
        with self._lock:
            found = self._entries[key]
            if found is None or found[0] != now or not found[1].is_current(manager, place):
                found = now, PreparedProgram(desc, manager, place, block_id, with_feed_fetch)
                self._entries.keep(key, found, program_bytes(desc))
            return found[1]


# Preparing -----------------------------------------------------------------------------------------------------------
def prepared_desc(desc: ProgramDesc, manager: Any) -> ProgramDesc:
    """The program as it runs.

    Args:
        desc: The program; it is not changed.
        manager: The packs.

    Returns:
        The program itself, unless a pack registered a preparation for one of its ops.
    """
    op_types = {op.type for block in desc.blocks for op in block.ops}
    for owner, op_type, target in manager.targets("preparation"):
        if op_type in op_types:
            desc = import_object(target, f"preparation of op {op_type} by {owner}")(desc)
    return desc


# Running a block -----------------------------------------------------------------------------------------------------
def run_block(run: RunContext, index: int, scope: Scope, before: Callable[[Scope], None] | None = None) -> None:
    """Run a block of the program, after creating its own variables.

    Args:
        run: the run.
        index: of the block.
        scope: where it runs.
        before: called with the scope when it has the variables.

    Raises:
        LoopLimitError: blocks of loops and branches have run too often.
    """
    block = run.program.block(index)
    block.create_variables(scope)
    if before is not None:
        before(scope)
    run_steps(run, block, scope, None)


def run_steps(run: RunContext, block: PreparedBlock, scope: Scope, keep: Sequence[str] | None) -> None:
    """Run a block in a scope that has its variables.

    Args:
        run: the run.
        block: the block.
        scope: where it runs.
        keep: local variables that are read afterwards; None = all.

    Raises:
        LoopLimitError: it is not the block that the run starts with, and such blocks have run too often.
    """
    if block.block.idx != run.program.block_id:
        # The main block is no round of a loop.
        run.rounds += 1
        run.limits.check_rounds(run.rounds, block.block.idx)
    if run.planned:
        block.plan(keep).run(run, scope)
    else:
        run_operators(run, block.operators, scope, None if keep is None else block.dying(keep))


def run_operators(
    run: RunContext, operators: Sequence[OperatorBase], scope: Scope, dying: Sequence[Dying] | None = None
) -> None:
    """Run operators in order; observers see each one before and after.

    Args:
        run: the run.
        operators: those to run.
        scope: where they run.
        dying: per operator, what is dropped after it (liveness.last_uses).
    """
    for i, op in enumerate(operators):
        for o in run.observers:
            o.before_op(op, scope)
        op.run(scope, run)
        for o in run.observers:
            o.after_op(op, scope)
        if dying is not None:
            for name in dying[i].values:
                var = scope.find_local_var(name)
                if var is not None:
                    var.value = None
            for name in dying[i].buffers:
                _free_buffer(scope.find_local_var(name))


def _free_buffer(var: Variable | None) -> None:
    """Free a tensor's memory, but not its shape."""
    value = var.value if var is not None else None
    if var is not None and isinstance(value, LoDTensor):
        # Later ops read the shape, as those whose no_need_buffer_vars say so.
        array = ShapeOnly(value.array)
        var.value = LoDTensor(array, value.lod, place=value.place, check=False)


# One op --------------------------------------------------------------------------------------------------------------
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
            rules=PLAIN_KERNELS if in_reference() else ANY_KERNEL,
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
