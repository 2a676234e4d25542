"""GraphView: the queries about the variables of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.device import host_array
from oprack.ir.new_op import misfit_in
from oprack.tensor import LoDTensor

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc
    from oprack.device import DeviceContextPool
    from oprack.ir.nodes import OpNode, VarNode
    from oprack.ir.versions import Versions
    from oprack.packs.manager import PackManager
    from oprack.tensor import Scope


class GraphView:
    """The read-only part of Graph: queries, which do not change it; the attributes are those of Graph."""

    block: BlockDesc
    scope: Scope | None
    manager: PackManager
    keep: set[str]
    _versions: Versions
    _pool: DeviceContextPool
    # (names that other blocks read, names that they write)
    _elsewhere: tuple[set[str], set[str]]

    def vars(self) -> list[VarNode]:
        """Every version of every variable that an op reads or writes."""
        return [node for versions in self._versions.lists() for node in versions]

    def versions(self, name: str) -> list[VarNode]:
        """The versions of a variable, in order; version 0 is the value from outside of the block, if there is one."""
        return self._versions.of(name)

    def is_overwritten(self, node: VarNode, unchanged: Collection[OpNode] = ()) -> bool:
        """Whether the name is written again, so that this value can't be read at the end of the block.

        Args:
            unchanged: Ops that are known to write back what they read.
        """
        return self._versions.is_overwritten(node, unchanged)

    def is_kept(self, node: VarNode) -> bool:
        """Whether the value may be read by name, other than through an input slot in this block."""
        if node.pinned or self.is_overwritten(node):
            return node.pinned
        # The next round of a loop may read a variable of an outer block.
        outer = self.block.idx != 0 and node.name not in self.block.vars
        return outer or node.persistable or node.name in self.keep

    def is_external(self, node: VarNode) -> bool:
        """Whether the value comes from outside of the block."""
        return node.producer is None

    def constant(self, node: VarNode, unchanged: Collection[OpNode] = ()) -> LoDTensor | None:
        """The value of a variable that is constant: persistable, set in the scope, and written by no op of the program.

        Args:
            node: The variable.
            unchanged: Ops that are known to write back what they read.

        Returns:
            The value; None for a variable that is not constant.
        """
        if self.scope is None or node.producer is not None or not node.persistable or node.name in self._elsewhere[1]:
            return None
        if self.is_overwritten(node, unchanged):
            return None
        var = self.scope.find_var(node.name)
        return var.value if var is not None and isinstance(var.value, LoDTensor) else None

    def constant_array(self, node: VarNode, unchanged: Collection[OpNode] = ()) -> np.ndarray[Any, Any] | None:
        """As `constant`, in host memory."""
        value = self.constant(node, unchanged)
        return None if value is None else host_array(value, self._pool)

    def misfit(
        self,
        desc: OpDesc,
        inputs: Mapping[str, Sequence[str]],
        outputs: Mapping[str, Sequence[str]],
        foreign_attrs: Collection[str] | None = None,
        check_attrs: bool = True,
    ) -> str:
        """Why an op with these variables does not fit its OpProto, or ""; see oprack.ir.new_op.misfit_in."""
        return misfit_in(self.block, self.manager, desc, inputs, outputs, foreign_attrs, check_attrs)
