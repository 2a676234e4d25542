"""Entry point of the pack."""

from __future__ import annotations

from oprack import hookimpl


@hookimpl
def oprack_ops(register):
    """Register every op of ops.toml."""
    register.manifest(__package__)
