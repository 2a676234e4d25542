"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register

# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = """
    affine attention conv_bn_act depthwise_separable feed_forward fully_connected inception inverted_residual
    layer_normed pool pyramid residual_basic residual_bottleneck squeeze_excite text_windows
    transposed upsampled_convolution
"""
# Parts of nets that live, in fuzz_lives.py
PARTS = """
    Affine Squashed Dropped Normalised Product Counted Scaled Viewed Sliced Reshaped Turned Squeezed Listed Picked
    Rows RowsLessOne Halved Manifold Centred Branched Leading Expanded Flattened
"""
WRITTEN_OUT = "transposed_product written_out_activation written_out_norm"


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register: Register) -> None:
    """Blocks of generated nets, and oprack.nn.utils; ops.toml names the rest."""
    register.layer("utils", f"{__package__}.training:utils", namespace="nn")
    register.layers(f"{__package__}.fuzz", *BLOCKS.split(), namespace="fuzz")
    register.layers(f"{__package__}.fuzz_written_out", *WRITTEN_OUT.split(), namespace="fuzz")
    register.layers(f"{__package__}.fuzz_lives", *PARTS.split(), namespace="fuzz_lives")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Rewrites of graphs."""
    for name in ("layer_norm", "activations"):
        register.pass_(
            f"fuse_{name}",
            f"{__package__}.passes.written_out:fuse_{name}",
            stage="canonicalize",
            before=["hoist_slices"],
            reorders_sums=True,
        )
    register.pass_("dropout_to_scale", f"{__package__}.passes.dropout:dropout_to_scale", stage="canonicalize")
    register.pass_(
        "hoist_slices",
        f"{__package__}.passes.slices:hoist_slices",
        stage="canonicalize",
        reorders_sums=True,
    )
    register.pass_(
        "fold_affine_into_conv",
        f"{__package__}.passes.conv:fold_affine_into_conv",
        stage="fuse",
        reorders_sums=True,
    )
    register.pass_(
        "fold_affine_into_matmul",
        f"{__package__}.passes.matmul:fold_affine_after_matmul",
        stage="fuse",
        reorders_sums=True,
    )
    register.pass_(
        "merge_pointwise_convs",
        f"{__package__}.passes.pointwise:merge_pointwise_convs",
        stage="fuse",
        after=["fold_affine_into_conv"],
        reorders_sums=True,
    )
