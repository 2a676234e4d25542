"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Kernels for ops of other packs, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_libraries(register: Register) -> None:
    """What speaks for numba."""
    register.library("numba", f"{__package__}.library:LIBRARY")
