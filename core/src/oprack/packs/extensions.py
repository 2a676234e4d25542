"""What packs bring beside ops, imported on first use: places, libraries, observers, layers of namespaces."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from oprack.errors import DefinitionError, OprackError, UnknownLayerError, UnknownRoleError, did_you_mean
from oprack.packs import advice
from oprack.packs.installed.resolve import import_object
from oprack.packs.pack import Pack

if TYPE_CHECKING:
    from oprack.op.vocabulary import Role


class Extensions:
    """What the packs in use bring beside ops and layers; made anew when they change.

    Args:
        targets: `PackManager.targets`.
        warn: Is told of what can't be imported: the text, and keys by which it is said once.
    """

    def __init__(self, targets: Callable[[str], list[tuple[str, str, Any]]], warn: Callable[..., None]) -> None:
        self._targets, self._warn = targets, warn
        self._observers: list[Any] | None = None

    def place_factory(self, kind: str) -> Any:
        """Import the factory that a pack registered for a kind of place.

        Args:
            kind: The kind of place, such as "cuda".

        Returns:
            The function that opens a device context; None when no pack registered one.

        Raises:
            PackImportError: It can't be imported.
        """
        for owner, key, target in self._targets("place"):
            if key == kind:
                return import_object(target, f"place {kind} of {owner}") if isinstance(target, str) else target
        return None

    def place_class(self, kind: str) -> Any:
        """Import the class of places that a pack registered for a kind.

        Args:
            kind: The kind of place, such as "toy".

        Returns:
            The class, which is made with the number of a device; None when no pack registered one.

        Raises:
            PackImportError: It can't be imported.
        """
        for owner, key, target in self._targets("place class"):
            if key == kind:
                return import_object(target, f"class of place {kind} of {owner}")
        return None

    def libraries(self) -> dict[str, Any]:
        """Import the kernel libraries of all packs.

        Returns:
            Name -> the object that represents the library, or the OprackError when it can't be imported.
        """
        libraries: dict[str, Any] = {}
        for owner, name, target in self._targets("library"):
            try:
                libraries[name] = import_object(target, f"library {name} of {owner}")
            except OprackError as e:
                libraries[name] = e
        return libraries

    def library_attrs(self) -> dict[str, str]:
        """The kernel libraries that ops select by an attribute, such as use_mkldnn.

        Returns:
            Name of the library -> name of the attribute.
        """
        return {name: attr for _, name, attr in self._targets("library attribute")}

    def roles(self) -> dict[str, Role]:
        """The vocabulary.

        Returns:
            The roles of the core and those that packs add, by name.
        """
        from oprack.op.vocabulary import ROLES, Role

        added = {name: Role.declared(name, *json.loads(text)) for _, name, text in self._targets("new role")}
        return {**added, **ROLES}

    def without_player(self, role: str, packs: Collection[Pack]) -> OprackError:
        """What to raise for a role that no pack plays.

        Args:
            role: The role.
            packs: All packs.

        Returns:
            An UnknownRoleError that names what needs the role and the distribution that brings it; a DefinitionError
            where the vocabulary has no such role.
        """
        roles = self.roles()
        if role in roles:
            return UnknownRoleError(advice.unknown_role(roles[role], packs))
        return DefinitionError(
            f"{role!r} is no role of the vocabulary{did_you_mean(str(role), roles)}; expected one of "
            "oprack.op.vocabulary, one that a pack adds by register.new_role, or a newer oprack"
        )

    def observers(self) -> list[Any]:
        """Observers of runs of all packs, imported once; one that can't be imported is reported and left out."""
        targets = self._targets("observer")  # asked each time, since packs may not have been found yet
        # No lock: two threads that both import get equal lists.
        if self._observers is None:
            observers = []
            for owner, _, target in targets:
                try:
                    observer = import_object(target, f"observer of {owner}") if isinstance(target, str) else target
                except OprackError as e:
                    self._warn(f"{e}", owner, "observer", str(target))
                else:
                    observers.append(observer)
            self._observers = observers
        return list(self._observers)


class NamespaceIndex:
    """Key ("layers.fc") -> pack and its string "module:function"; built with the index of ops.

    Args:
        rows: (pack, key, string), one for each key.
    """

    def __init__(self, rows: Iterable[tuple[Pack, str, Any]]) -> None:
        self._bringers = {key: (pack, str(target)) for pack, key, target in rows}
        # Functions that were imported; the index is replaced as a whole when packs change.
        self._objects: dict[str, Any] = {}

    def names(self, namespace: str) -> list[str]:
        """Names below a namespace, sorted."""
        prefix = namespace + "."
        return sorted(key.removeprefix(prefix) for key in self._bringers if key.startswith(prefix))

    def target(self, key: str, packs: Collection[Pack], op_owner: str) -> tuple[Pack, str]:
        """Who brings a key, and its string.

        Args:
            op_owner: Distribution of the op that has this name; "" when there is none.

        Raises:
            UnknownLayerError: No pack brings it. The message lists names alike.
        """
        if key not in self._bringers:
            raise UnknownLayerError(advice.unknown_layer(key, packs, self._bringers, op_owner))
        return self._bringers[key]

    def load(self, key: str, packs: Collection[Pack], op_owner: str) -> Any:
        """The function, imported once. Raises as `target`, and PackImportError."""
        if key not in self._objects:
            pack, target = self.target(key, packs, op_owner)
            asked_by = f"{key} of pack {pack.found.name} ({pack.owner} {pack.found.version})"
            self._objects[key] = import_object(target, asked_by)
        return self._objects[key]
