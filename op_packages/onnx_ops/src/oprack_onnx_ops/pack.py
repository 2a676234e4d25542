"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl
from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)
