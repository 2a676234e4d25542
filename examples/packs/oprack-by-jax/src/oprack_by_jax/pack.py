"""What oprack finds through the entry point: hook implementations, and nothing heavy to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_kernels(register: Register) -> None:
    """Bring the kernel that ops.toml lists, of an op of another pack."""
    register.manifest(__package__)


@hookimpl
def oprack_libraries(register: Register) -> None:
    """Bring what speaks for the library."""
    register.library("jax", f"{__package__}.library:LIBRARY")
