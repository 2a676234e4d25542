"""Variables that passes add to a program: fresh names, parameters and local variables."""

from __future__ import annotations

from typing import Any

from oprack.desc import BlockDesc, ProgramDesc
from oprack.errors import GraphError
from oprack.ir.nodes import VarNode
from oprack.tensor import Scope


class NewVars:
    """Adds variables to a program and its scope under names that neither has.

    Args:
        program: The program.
        block: The block that gets local variables; parameters belong to block 0.
        scope: Where values of parameters go; None where none can be added.

    Attributes:
        names: The names that were given out, whether or not the program still has them.
    """

    def __init__(self, program: ProgramDesc, block: BlockDesc, scope: Scope | None) -> None:
        self.names: set[str] = set()
        self._program, self._block, self._scope = program, block, scope
        # the last number by beginning of a name: without it, each new name would be searched for from 0 on
        self._numbers: dict[str, int] = {}

    def fresh_name(self, like: str) -> str:
        """A name that neither the program nor the scope has, made from `like`."""
        base = like.split(".ir_", 1)[0]
        while True:
            number = self._numbers[base] = self._numbers.get(base, -1) + 1
            name = f"{base}.ir_{number}"
            in_scope = self._scope is not None and name in self._scope
            if not in_scope and not any(name in b.vars for b in self._program.blocks):
                self.names.add(name)
                return name

    def parameter(self, value: Any, like: str) -> VarNode:
        """A parameter with a fresh name, set in the scope.

        Args:
            value: Array or LoDTensor.
            like: What the name is made from.

        Raises:
            GraphError: There is no scope.
        """
        if self._scope is None:
            raise GraphError(f"a parameter like {like!r} can't be added: the graph was made without a scope")
        name = self.fresh_name(like)
        self._scope.var(name).set(value)
        tensor = self._scope.get_var(name).get()
        desc = self._program.blocks[0].create_var(
            name, dtype=tensor.dtype, shape=tensor.shape, persistable=True, is_parameter=True, stop_gradient=True
        )
        return VarNode(name, desc, fact=desc.clone())

    def local(self, like: str) -> VarNode:
        """A local variable with a fresh name."""
        name = self.fresh_name(like)
        return VarNode(name, self._block.create_var(name))

    def erase(self, names: list[str]) -> None:
        """Free the values of those of the names that were added here."""
        if self._scope is not None:
            self._scope.erase([name for name in names if name in self.names])
