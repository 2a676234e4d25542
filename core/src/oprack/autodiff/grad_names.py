"""Names of the gradients of one backward pass."""

from __future__ import annotations

from collections.abc import Iterable

from oprack.op.grad_desc import grad_name


class GradNames:
    """Gives each variable's gradient a name, and a number where an earlier pass has taken the name.

    Args:
        taken: Names of the block that the gradient ops go to, as it was before the pass.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = frozenset(taken)
        self._names: dict[str, str] = {}
        self._variables: dict[str, str] = {}

    def of(self, var: str) -> str:
        """Name of the gradient of `var`, the same whenever it is asked for."""
        found = self._names.get(var)
        if found is None:
            found = self._names[var] = self.free(grad_name(var))
            self._variables[found] = var
        return found

    def free(self, name: str) -> str:
        """`name`, or with a number when an earlier pass has it."""
        found, n = name, 0
        while found in self._taken:
            n += 1
            found = f"{name}_{n}"
        return found

    def variable(self, name: str) -> str | None:
        """The variable whose gradient has this name; None for any other name."""
        return self._variables.get(name)
