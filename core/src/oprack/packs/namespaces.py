"""Names that packs play a part under: layers of a namespace, and roles of the vocabulary."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from oprack.errors import UnknownLayerError, UnknownRoleError
from oprack.packs import report
from oprack.packs.discovery import Pack
from oprack.packs.resolve import import_object


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
            raise UnknownLayerError(report.unknown_layer(key, packs, self._bringers, op_owner))
        return self._bringers[key]

    def load(self, key: str, packs: Collection[Pack], op_owner: str) -> Any:
        """The function, imported once. Raises as `target`, and PackImportError."""
        if key not in self._objects:
            pack, target = self.target(key, packs, op_owner)
            asked_by = f"{key} of pack {pack.found.name} ({pack.owner} {pack.found.version})"
            self._objects[key] = import_object(target, asked_by)
        return self._objects[key]


class RoleIndex:
    """Role -> op type; built with the index of ops.

    Args:
        players: (pack, role, op type), one for each role.
        packs: All of them, for messages.
    """

    def __init__(self, players: Sequence[tuple[Pack, str, Any]], packs: Collection[Pack]) -> None:
        self._players, self._packs = players, packs
        self._found: dict[str, str] = {}

    def op_for(self, role: str) -> str:
        """The op type that plays a role.

        Raises:
            UnknownRoleError: No pack plays the role. The message names what needs it and the distribution that brings
                it.
            DefinitionError: The vocabulary has no such role.
        """
        found = self._found.get(role)
        return found if found is not None else self._find(role)

    def _find(self, role: str) -> str:
        from oprack.op.vocabulary import find_role

        wanted = find_role(role)
        player = next((str(op_type) for _, name, op_type in self._players if name == role), None)
        if player is None:
            raise UnknownRoleError(report.unknown_role(wanted, self._packs))
        self._found[role] = player
        return player
