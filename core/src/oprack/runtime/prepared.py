"""Prepared programs: operators are made once for each program and place, and remember their choices."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from oprack.cache import Cache
from oprack.errors import InvalidArgumentError
from oprack.runtime.feed_fetch import FeedOps
from oprack.runtime.kernel_operator import create_operator
from oprack.runtime.liveness import Dying, check_nesting, last_uses
from oprack.runtime.operator import OperatorBase
from oprack.runtime.plan.block_plan import BlockPlan
from oprack.runtime.preparations import prepared_desc
from oprack.tensor import Place, Scope
from oprack.types import EMPTY_VAR, PER_RUN_KINDS

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, ProgramDesc


_LOG = logging.getLogger(__name__)
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
            ops, unread = [op.desc for op in self.operators], [op.info.no_need_buffer_vars for op in self.operators]
            found = self._dying[key] = last_uses(self.block, ops, key, unread)
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
        manager.require_ops(op_types)
        manager.warn_of_newer_ops(op_types, desc.op_version_map)

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

    def __init__(self, size: int = 32) -> None:
        self._entries = Cache(size, "programs")  # of a snapshot and a PreparedProgram each
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
