"""What packs bring by the hook oprack_layers: functions of oprack.layers, oprack.optimizer and their like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from oprack.errors import AlreadyExistsError, UnknownLayerError
from oprack.packs import report
from oprack.packs.discovery import Pack
from oprack.packs.resolve import import_object


class NamespaceIndex:
    """Key ("layers.fc") -> packs and their strings "module:function"; built with the index of ops."""

    def __init__(self, packs: Iterable[Pack]) -> None:
        self._bringers: dict[str, list[tuple[Pack, str]]] = defaultdict(list)
        # Functions that were imported; the index is replaced as a whole when packs change.
        self._objects: dict[str, Any] = {}
        for pack in packs:
            pack.layer_conflicts = ()
            if pack.status == "ok":
                for kind, key, target in pack.contributions.targets:
                    if kind == "layer":
                        self._bringers[key].append((pack, target))
        for key, bringers in self._bringers.items():
            if len(bringers) > 1:
                for pack, _ in bringers:
                    pack.layer_conflicts += (key,)

    def names(self, namespace: str) -> list[str]:
        """Names below a namespace, sorted, those that two packs bring included."""
        prefix = namespace + "."
        return sorted(key.removeprefix(prefix) for key in self._bringers if key.startswith(prefix))

    def target(self, key: str, packs: Collection[Pack], op_owner: str) -> tuple[Pack, str]:
        """Who brings a key, and its string.

        Args:
            op_owner: Distribution of the op that has this name; "" when there is none.

        Raises:
            AlreadyExistsError: When two packs bring it.
            UnknownLayerError: No pack brings it. The message lists names alike.
        """
        bringers = self._bringers.get(key, ())
        if len(bringers) > 1:
            raise AlreadyExistsError(report.duplicate(key, [pack for pack, _ in bringers], "function"))
        if not bringers:
            raise UnknownLayerError(report.unknown_layer(key, packs, self._bringers, op_owner))
        return bringers[0]

    def load(self, key: str, packs: Collection[Pack], op_owner: str) -> Any:
        """The function, imported once. Raises as `target`, and PackImportError."""
        if key not in self._objects:
            pack, target = self.target(key, packs, op_owner)
            asked_by = f"{key} of pack {pack.found.name} ({pack.owner} {pack.found.version})"
            self._objects[key] = import_object(target, asked_by)
        return self._objects[key]
