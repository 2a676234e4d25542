"""What packs bring by the hook oprack_layers: functions of oprack.layers, oprack.optimizer and their like."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from oprack.errors import UnknownLayerError
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
