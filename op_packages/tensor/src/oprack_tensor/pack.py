"""Entry point of the pack: tells oprack where its manifest is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register

# Role -> the op of this pack that plays it; see oprack.op.vocabulary
ROLES = {
    "constant": "fill_constant",
    "convert": "cast",
    "copy": "assign",
    "filled_like": "fill_any_like",
    "part": "slice",
    "permute_dims": "transpose2",
    "shape_of": "shape",
    "split_dim": "split",
    "zeros_like": "fill_zeros_like",
}


# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("copied", "flattened", "joined", "parted", "shuffled")


@hookimpl
def oprack_ops(register: Register) -> None:
    """Register the ops and kernels that ops.toml beside this file lists."""
    register.manifest(__package__)


@hookimpl
def oprack_vocabulary(register: Register) -> None:
    """Which ops the core, captured functions and ranks ask for."""
    for role, op_type in ROLES.items():
        register.role(role, op_type)


@hookimpl
def oprack_layers(register: Register) -> None:
    """Indexing, and blocks of generated nets; ops.toml names what users call."""
    register.layers(f"{__package__}.indexing.operators", "getitem", namespace="operators")
    register.layers(f"{__package__}.indexing.tensors", "getitem", "setitem", namespace="tensor_operators")
    register.layers(f"{__package__}.fuzz", *BLOCKS, namespace="fuzz")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Rewrites of graphs."""
    register.pass_(
        "known_shape_to_attr",
        f"{__package__}.passes.known_shape:known_shape_to_attr",
        stage="fold",
    )
    register.pass_(
        "known_size_to_fill",
        f"{__package__}.passes.known_fill:known_size_to_fill",
        stage="fold",
    )
    register.pass_(
        "merge_shape_ops",
        f"{__package__}.passes.shape:merge_shape_ops",
        stage="fuse",
        inference_only=False,
    )
