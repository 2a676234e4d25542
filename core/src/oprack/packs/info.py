"""PackInfo, which describes an installed pack, and the warnings about packs."""

from __future__ import annotations

import sys
import warnings
from dataclasses import field
from typing import Any

from oprack.records import dataclass


class PackWarning(UserWarning):
    """The installed packs do not match what was requested, for example by an unknown name in OPRACK_PACKS."""


class BrokenPackWarning(PackWarning):
    """A pack is broken and left out; the others work. `oprack doctor` prints the full reason."""


def warn(text: str, category: type[UserWarning]) -> None:
    """Issue a warning at the innermost line outside oprack, so that it points at the user's code."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "oprack":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


@dataclass(frozen=True)
class PackInfo:
    """One installed pack.

    Attributes:
        name: Name of its entry point.
        distribution: Name of the distribution that contains it.
        version: Version of the distribution.
        status: "ok", "blocked" or "broken".
        error: Class and text of the exception that broke it; "" when it works.
        op_types: Ops that it defines, as far as its manifest can be read.
        hooks: Hooks that it implements.
        entry_point: The module that its entry point names.
        conflicts: Op types that another pack defines, too.
        layers: Names that it adds through oprack_layers, such as "layers.fc".
        layer_conflicts: Those of `layers` that another pack adds, too.
        kernels: Whether it brings kernels.
        exception: The exception that broke it; None when it works.
    """

    name: str
    distribution: str
    version: str
    status: str = "ok"
    error: str = ""
    op_types: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    entry_point: str = ""
    conflicts: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    layer_conflicts: tuple[str, ...] = ()
    kernels: bool = False
    exception: BaseException | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON.

        Returns:
            Names and values of all fields.
        """
        return {
            "name": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "status": self.status,
            "error": self.error,
            "ops": list(self.op_types),
            "hooks": list(self.hooks),
            "entry_point": self.entry_point,
            "conflicts": list(self.conflicts),
            "layers": list(self.layers),
            "layer_conflicts": list(self.layer_conflicts),
            "kernels": self.kernels,
        }
