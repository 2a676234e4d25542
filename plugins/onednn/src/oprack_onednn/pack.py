"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl


@hookimpl
def oprack_ops(register):
    """Kernels for ops of other packs, by the strings in ops.toml."""
    register.manifest(__package__)
