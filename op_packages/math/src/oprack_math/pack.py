"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register

# Role -> the op of this pack that plays it; see oprack.op.vocabulary
ROLES = {
    "add": "elementwise_add",
    "affine": "scale",
    "sum_of_all": "sum",
}

# Python's operators, by the names of the functions in arithmetic/: x + y, and 1 + x
BETWEEN = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul lt le gt ge eq ne"
OTHERS = "pos neg abs invert xor lshift rlshift rshift rrshift"
# ... and those whose names are words of Python, or that are the same from both sides
RENAMED = {"and": "and_", "rand": "and_", "or": "or_", "ror": "or_", "rxor": "xor"}

# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("means", "pointwise_image", "pointwise_rows", "pointwise_sequence", "pointwise_steps")


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_vocabulary(register: Register) -> None:
    """Which ops the core, captured functions and ranks ask for."""
    for role, op_type in ROLES.items():
        register.role(role, op_type)


@hookimpl
def oprack_layers(register: Register) -> None:
    """Python's operators, and blocks of generated nets; ops.toml names what users call."""
    of_all, of_tensors = f"{__package__}.arithmetic.operators", f"{__package__}.arithmetic.tensors"
    register.layers(of_all, *BETWEEN.split(), *OTHERS.split(), namespace="operators")
    for name, function in RENAMED.items():
        register.layer(name, f"{of_all}:{function}", namespace="operators")
    register.layers(of_tensors, *BETWEEN.split(), "rmatmul", namespace="tensor_operators")
    register.layers(f"{__package__}.fuzz", *BLOCKS, namespace="fuzz")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Rewrites of graphs."""
    package = f"{__package__}.passes"
    register.pass_("fold_scale_into_alpha", f"{package}.matmul:fold_scale_into_alpha", stage="fold", reorders_sums=True)
    # what no other op has taken in
    register.pass_("merge_affine", f"{package}.affine:merge_affine", stage="lower", reorders_sums=True)
    register.pass_("scalars_to_scales", f"{package}.affine:scalars_to_scales", stage="lower", after=["merge_affine"])
    fold_transpose = f"{package}.matmul:fold_transpose_into_matmul"
    register.pass_("fold_transpose_into_matmul", fold_transpose, stage="lower", inference_only=False)
