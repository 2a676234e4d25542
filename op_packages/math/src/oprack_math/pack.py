"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register

# Role of oprack.op.vocabulary -> the op of this pack that plays it.
ROLES = {
    "absolute": "abs",
    "add": "elementwise_add",
    "affine": "scale",
    "and": "logical_and",
    "argmax_along": "arg_max",
    "argmin_along": "arg_min",
    "bits_and": "bitwise_and",
    "bits_not": "bitwise_not",
    "bits_or": "bitwise_or",
    "bits_xor": "bitwise_xor",
    "clamp": "clip",
    "differs": "not_equal",
    "divide": "elementwise_div",
    "equals": "equal",
    "floor_divide": "elementwise_floordiv",
    "greater": "greater_than",
    "greater_or_equal": "greater_equal",
    "larger": "elementwise_max",
    "left_shift": "bitwise_left_shift",
    "less": "less_than",
    "less_or_equal": "less_equal",
    "matrix_product": "matmul_v2",
    "max_along": "reduce_max",
    "mean_along": "reduce_mean",
    "min_along": "reduce_min",
    "modulo": "elementwise_mod",
    "multiply": "elementwise_mul",
    "not": "logical_not",
    "number_power": "pow",
    "or": "logical_or",
    "power": "elementwise_pow",
    "product_along": "reduce_prod",
    "right_shift": "bitwise_right_shift",
    "smaller": "elementwise_min",
    "subtract": "elementwise_sub",
    "sum_along": "reduce_sum",
    "sum_of_all": "sum",
    "xor": "logical_xor",
}


# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = ("means", "pointwise_image", "pointwise_rows", "pointwise_sequence", "pointwise_steps")


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_vocabulary(register: Register) -> None:
    """Which ops `x + y`, x[0], x.sum() and the backward pass call."""
    for role, op_type in ROLES.items():
        register.role(role, op_type)


@hookimpl
def oprack_layers(register: Register) -> None:
    """Blocks of generated nets; ops.toml names what users call."""
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
