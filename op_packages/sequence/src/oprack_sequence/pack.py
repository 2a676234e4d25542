"""Entry point of the pack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register

# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("attended", "convolved", "gru", "labels", "lstm", "moved", "pooled", "reversed_rows")


@hookimpl
def oprack_ops(register: Register) -> None:
    """Register every op of ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register: Register) -> None:
    """Blocks of generated nets; ops.toml names what users call."""
    register.layers(f"{__package__}.fuzz", *BLOCKS, namespace="fuzz")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Rewrites of graphs."""
    register.pass_(
        "unpad",
        f"{__package__}.passes.unpad:unpad",
        stage="canonicalize",
        after=["fuse_layer_norm", "fuse_activations"],
        before=["hoist_slices"],
        reorders_sums=True,
        optional=True,
    )
