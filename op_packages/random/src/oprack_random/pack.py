"""Entry point of the pack: tells oprack where its manifest is."""

from __future__ import annotations

from typing import Any

from oprack import hookimpl

# Module in layers/ -> the functions of it that are layers.
LAYERS = {
    "draws": """
        gaussian_random randint randperm uniform_random uniform_random_batch_size_like
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
    for name in ("MSRA", "Normal", "TruncatedNormal", "Uniform", "Xavier"):
        register.layers(f"{__package__}.initializers", name, f"{name}Initializer", namespace="initializer")
