"""Entry point of the pack."""

from __future__ import annotations

from oprack import hookimpl

# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("convolved", "gru", "labels", "lstm", "pooled", "reversed_rows")


@hookimpl
def oprack_ops(register):
    """Register every op of ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register):
    """Blocks of generated nets; ops.toml names what users call."""
    register.layers(f"{__package__}.fuzz", *BLOCKS, namespace="fuzz")
