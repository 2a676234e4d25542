"""Packs that are known to exist: those that are installed, oprack's own, and those that others made known."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from oprack.names.tables import homes, known_packs

_SHOWN = 6


class InstalledPack(Protocol):
    """What `oprack.packs()` says of one."""

    @property
    def distribution(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def op_types(self) -> tuple[str, ...]: ...
    @property
    def layers(self) -> tuple[str, ...]: ...


class KnownPack(NamedTuple):
    """A distribution that brings packs.

    Attributes:
        version: The version that is installed, "" for none.
        summary: What it is for, in a line; "" when nobody says.
        url: Where it is made; "" when nobody says.
        names: The ops, and with their namespaces the layers and other names, that it brings.
    """

    distribution: str
    version: str
    summary: str
    url: str
    names: tuple[str, ...]

    def matches(self, word: str) -> bool:
        """Whether a word, in any case, is in its name, its summary or a name that it brings."""
        return any(word.lower() in text.lower() for text in (self.distribution, self.summary, *self.names))

    def shown(self, word: str) -> tuple[str, str, str]:
        """A row of a table: the names with the word, or its summary where there are none."""
        names = [name for name in self.names if word.lower() in name.lower()]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return self.distribution, self.version or "no", " ".join(names[:_SHOWN]) + more or self.summary

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**self._asdict(), "names": list(self.names)}


def known_to_exist(packs: Iterable[InstalledPack]) -> list[KnownPack]:
    """All packs that are known to exist, sorted by distribution.

    Args:
        packs: Those that are installed.

    Returns:
        One for each distribution.
    """
    found: dict[str, KnownPack] = {}
    for distribution, kinds in homes().items():
        own = [n if kind == "ops" else f"{kind}.{n}" for kind, given in kinds.items() for n in given]
        found[distribution] = KnownPack(distribution, "", "", "", tuple(own))
    for distribution, told in known_packs().items():
        brings = tuple(told.get("brings", "").split())
        found[distribution] = KnownPack(distribution, "", told.get("summary", ""), told.get("url", ""), brings)
    for pack in packs:
        before = found.get(pack.distribution, KnownPack(pack.distribution, "", "", "", ()))
        names = (*before.names, *pack.op_types, *pack.layers)
        found[pack.distribution] = before._replace(
            version=pack.version,
            summary=before.summary or _summary(pack.distribution),
            names=tuple(dict.fromkeys(names)),
        )
    return [found[name] for name in sorted(found)]


def _summary(distribution: str) -> str:
    """What the metadata of an installed distribution says that it is for."""
    try:
        metadata = importlib.metadata.metadata(distribution)
        return metadata["Summary"] if "Summary" in metadata else ""
    except importlib.metadata.PackageNotFoundError:
        return ""
