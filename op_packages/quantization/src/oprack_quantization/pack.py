"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl
from oprack.packs import Register

# Of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("quantized_convolution", "quantized_product")


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register: Register) -> None:
    """Quantisation of trained programs, and blocks of generated nets."""
    register.layers(f"{__package__}.fuzz", *BLOCKS, namespace="fuzz")
    names = ("quantize_post_training", "choose_precisions", "Quantized", "LayerReport")
    register.layers(f"{__package__}.post_training", *names, namespace="quantization")


@hookimpl
def oprack_commands(register: Register) -> None:
    """The command `oprack quantize`."""
    register.command("quantize", f"{__package__}.command:configure", "write a model in int8, with what it costs")
