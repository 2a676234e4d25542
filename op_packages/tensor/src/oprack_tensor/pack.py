"""Entry point of the pack: tells oprack where its manifest is."""

from __future__ import annotations

from typing import Any

from oprack import hookimpl

# Module in layers/ -> the functions of it that are layers.
LAYERS = {
    "create": """
        assign create_tensor eye fill_constant fill_constant_batch_size_like linspace ones ones_like range
        zeros zeros_like
    """,
    "shape": """
        cast expand expand_as flatten reshape reverse shape squeeze transpose unsqueeze
    """,
    "parts": """
        argsort concat gather gather_nd scatter scatter_nd_add slice split stack strided_slice topk unstack
        where
    """,
}


# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("copied", "flattened", "joined", "parted", "shuffled")


@hookimpl
def oprack_ops(register: Any) -> None:
    """Register the ops and kernels that ops.toml beside this file lists."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register: Any) -> None:
    """Functions that append ops to a program, found as oprack.layers.<name> and imported on first use."""
    for module, names in LAYERS.items():
        register.layers(f"{__package__}.layers.{module}", *names.split())
    register.layers(f"{__package__}.fuzz", *BLOCKS, namespace="fuzz")


@hookimpl
def oprack_passes(register: Any) -> None:
    """Rewrites of graphs."""
    register.pass_(
        "known_shape_to_attr",
        f"{__package__}.passes.known_shape:known_shape_to_attr",
        stage="fold",
    )
    register.pass_(
        "merge_shape_ops",
        f"{__package__}.passes.shape:merge_shape_ops",
        stage="fuse",
        inference_only=False,
    )
