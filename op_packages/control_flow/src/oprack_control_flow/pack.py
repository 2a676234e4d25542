"""Entry point of the pack: tells oprack where its manifest is."""

from __future__ import annotations

from typing import Any

from oprack import hookimpl

# Module in layers/ -> the functions of it that are layers.
LAYERS = {
    "loops": """
        While while_loop
    """,
    "branches": """
        ConditionalBlock Switch case cond
    """,
    "arrays": """
        Assert Print array_length array_read array_to_lod_tensor array_write create_array is_empty
        lod_rank_table lod_tensor_to_array max_sequence_len reorder_lod_tensor_by_rank shrink_memory
        tensor_array_to_tensor
    """,
    "rnn": """
        DynamicRNN StaticRNN
    """,
}


@hookimpl
def oprack_ops(register: Any) -> None:
    """Register the ops and kernels that ops.toml beside this file lists."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register: Any) -> None:
    """Functions that append ops to a program, found as oprack.layers.<name> and imported on first use."""
    for module, names in LAYERS.items():
        register.layers(f"{__package__}.layers.{module}", *names.split())
    register.layer("array_loop", f"{__package__}.fuzz:array_loop", namespace="fuzz")
