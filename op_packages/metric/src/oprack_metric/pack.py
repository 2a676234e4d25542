"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl

# Module in layers/ -> the functions of it that are layers.
LAYERS = {
    "evaluation": """
        accuracy auc chunk_eval mean_iou
    """,
}


@hookimpl
def oprack_ops(register):
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register):
    """Functions that append ops to a program, found as oprack.layers.<name> and imported on first use."""
    for module, names in LAYERS.items():
        register.layers(f"{__package__}.layers.{module}", *names.split())
