"""Scope: named variables; a look-up that fails in a scope continues in its parent."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from oprack.errors import NotFoundError, PreconditionNotMetError, did_you_mean


class Variable:
    """A named holder of one value: LoDTensor, SelectedRows, LoDTensorArray, a sparse tensor, or the state of an op.

    Args:
        name: The name.
        value: The initial value; None leaves the variable uninitialized.
    """

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Any = None) -> None:
        self.name = name
        self.value = value

    def set(self, value: Any) -> None:
        """Set the value; arrays are wrapped in a LoDTensor.

        The memory stays the caller's: an in-place op copies it before it writes. Arrays in another byte order, or with
        gaps between their elements, are converted.

        Raises:
            InvalidArgumentError: The value is a masked array.
        """
        from oprack.tensor.kinds import plain_value
        from oprack.tensor.lod_tensor import LoDTensor

        if hasattr(value, "__oprack_value__"):  # an eager tensor
            value = value.__oprack_value__()
        value = plain_value(value)
        if isinstance(value, LoDTensor):
            # A new LoDTensor, so that marking it as shared does not mark the caller's.
            value = LoDTensor(value.array, value.lod, place=value.place, check=False, shared=True)
        elif hasattr(value, "dtype") and hasattr(value, "shape") and not hasattr(value, "place"):
            value = LoDTensor(value, shared=True)
        self.value = value

    def get(self) -> Any:
        """The value.

        Raises:
            PreconditionNotMetError: Nothing was set yet.
        """
        if self.value is None:
            raise PreconditionNotMetError(
                f"variable {self.name!r} holds no value; set one, or run the op that writes it, before reading it"
            )
        return self.value

    def is_initialized(self) -> bool:
        """Whether it holds a value: not before anything was set, nor after `clear`."""
        return self.value is not None

    def clear(self) -> None:
        """Drop the value; the variable is uninitialized again."""
        self.value = None

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {type(self.value).__name__})"


class Scope:
    """Variables by name, with a parent to look in next and children (`new_scope`) for local ones.

    Args:
        parent: Where to look for variables that this scope does not have.
    """

    # No lock: each run has a scope of its own, and scopes that threads share change only by single, atomic dict
    # operations.
    __slots__ = ("_kids", "_vars", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self._vars: dict[str, Variable] = {}
        self._kids: list[Scope] = []

    def var(self, name: str) -> Variable:
        """The variable of this scope, created when there is none; it hides a parent's variable of the same name."""
        variable = self._vars.get(name)
        if variable is None:
            variable = self._vars[name] = Variable(name)
        return variable

    def find_var(self, name: str) -> Variable | None:
        """The variable of this scope or the nearest ancestor; None when there is none."""
        scope: Scope | None = self
        while scope is not None:
            variable = scope._vars.get(name)
            if variable is not None:
                return variable
            scope = scope.parent
        return None

    def find_values(self, names: Sequence[str]) -> list[Any]:
        """The values of variables that `find_var` finds, many at once; None for what is absent or holds none."""
        found: list[Variable | None] = list(map(self._vars.get, names))
        scope = self.parent
        while scope is not None and None in found:
            above = map(scope._vars.get, names)
            found = [a if v is None else v for v, a in zip(found, above, strict=True)] if any(found) else list(above)
            scope = scope.parent
        return [None if variable is None else variable.value for variable in found]

    def lacks(self, names: Set[str]) -> bool:
        """Whether `find_var` finds no variable of some of these names, many at once.

        Args:
            names: Names of variables.

        Returns:
            True when one or more are missing.
        """
        scope: Scope | None = self
        while scope is not None:
            if names <= scope._vars.keys():
                return False
            scope = scope.parent
        return any(self.find_var(name) is None for name in names)

    def get_var(self, name: str) -> Variable:
        """As `find_var`, for a variable that must exist.

        Raises:
            NotFoundError: There is none; the message suggests similar names.
        """
        variable = self.find_var(name)
        if variable is None:
            raise NotFoundError(f"variable {name!r} is not in the scope{did_you_mean(name, self.all_var_names())}")
        return variable

    def root(self) -> Scope:
        """The outermost ancestor; this scope itself when it has no parent."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find_local_var(self, name: str) -> Variable | None:
        """As `find_var`, without looking in the parents."""
        return self._vars.get(name)

    def new_scope(self) -> Scope:
        """A new child scope, which lives until `drop_kids` or `delete_scope`."""
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def delete_scope(self, kid: Scope) -> None:
        """Drop a child and its variables.

        Raises:
            NotFoundError: `kid` is not a child of this scope.
        """
        try:
            self._kids.remove(kid)
        except ValueError:
            raise NotFoundError(
                f"delete_scope({kid!r}): it is not a child of this scope, or was deleted before; expected a scope that "
                "new_scope() of this scope returned"
            ) from None

    def drop_kids(self) -> None:
        """Drop all children and their variables."""
        self._kids.clear()

    def kids(self) -> list[Scope]:
        """The children, oldest first."""
        return list(self._kids)

    def erase(self, names: list[str]) -> None:
        """Remove these variables of this scope; unknown names are ignored."""
        for name in names:
            self._vars.pop(name, None)

    def rename(self, old: str, new: str) -> None:
        """Rename a variable of this scope.

        Args:
            old: Its current name.
            new: Its new name.

        Raises:
            NotFoundError: The scope has no variable of that name.
        """
        if old not in self._vars:
            raise NotFoundError(f"rename {old!r} to {new!r}: this scope has no variable {old!r}")
        var = self._vars.pop(old)
        var.name = new
        self._vars[new] = var

    def local_var_names(self) -> list[str]:
        """Names of the variables of this scope, in order of creation."""
        return list(self._vars)

    def all_var_names(self) -> list[str]:
        """Names of this scope and all its ancestors."""
        names: dict[str, None] = {}
        scope: Scope | None = self
        while scope is not None:
            names.update(dict.fromkeys(scope._vars))
            scope = scope.parent
        return list(names)

    def __contains__(self, name: str) -> bool:
        return self.find_var(name) is not None

    def __repr__(self) -> str:
        return f"Scope({len(self._vars)} variables{', child' if self.parent else ''})"
