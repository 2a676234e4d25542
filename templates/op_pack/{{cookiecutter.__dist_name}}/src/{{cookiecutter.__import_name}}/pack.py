"""What oprack finds through the entry point: hook implementations, and nothing heavy to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Bring the ops, facets for ops of other packs, and kernels that ops.toml lists."""
    register.manifest(__package__)
