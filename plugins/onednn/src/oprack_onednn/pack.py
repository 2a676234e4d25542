"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl


@hookimpl
def oprack_ops(register):
    """Kernels for ops of other packs, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_libraries(register):
    """What speaks for the library: whether it serves, and how many threads it uses."""
    register.library("onednn", f"{__package__}.library:LIBRARY")


@hookimpl
def oprack_passes(register):
    """Rewrites of graphs for primitives that do several ops at once; they run last, when the generic ones are done."""
    after = [
        *("fold_constants", "fold_affine_into_conv", "fold_affine_into_matmul", "merge_affine", "scalars_to_scales"),
        *("fold_transpose_into_matmul", "fold_scale_into_alpha"),
    ]
    register.pass_(
        "onednn_fuse_attention",
        f"{__package__}.passes.attention:fuse_attention",
        place="cpu",
        library="onednn",
        after=[*after, "merge_shape_ops"],
        before=["onednn_fuse_matmul"],
        reorders_sums=True,
    )
    for name in ("fuse_conv2d", "fuse_matmul"):
        register.pass_(
            f"onednn_{name}",
            f"{__package__}.passes.fuse:{name}",
            place="cpu",
            library="onednn",
            after=after,
            reorders_sums=True,
        )
    register.pass_(
        "onednn_fuse_squeeze_excite",
        f"{__package__}.passes.squeeze_excite:fuse_squeeze_excite",
        place="cpu",
        library="onednn",
        after=["onednn_fuse_conv2d"],
        reorders_sums=True,
    )
    register.pass_(
        "onednn_fuse_recurrent",
        f"{__package__}.passes.recurrent:fuse_recurrent",
        place="cpu",
        library="onednn",
        after=["onednn_fuse_matmul"],
        reorders_sums=True,
    )
    register.pass_(
        "onednn_pair_conv2d_transpose",
        f"{__package__}.passes.conv_transpose_pair:pair_conv2d_transpose",
        place="cpu",
        library="onednn",
        after=["onednn_fuse_conv2d"],
        reorders_sums=True,
    )
    register.pass_(
        "onednn_upsampled_conv2d",
        f"{__package__}.passes.upsampled_conv:upsampled_conv2d",
        place="cpu",
        library="onednn",
        after=["onednn_fuse_conv2d", "onednn_fuse_squeeze_excite"],
        reorders_sums=True,
    )
    register.pass_(
        "onednn_chain_eltwise",
        f"{__package__}.passes.chains:chain_eltwise",
        place="cpu",
        library="onednn",
        after=["onednn_fuse_conv2d", "onednn_fuse_matmul"],
    )
    register.pass_(
        "onednn_read_early",
        f"{__package__}.passes.early:read_early",
        place="cpu",
        library="onednn",
        after=["onednn_upsampled_conv2d", "onednn_chain_eltwise", "onednn_chain_conv2d"],
    )
    register.pass_(
        "onednn_winograd",
        f"{__package__}.passes.winograd:fuse_winograd",
        place="cpu",
        library="onednn",
        after=["onednn_fuse_conv2d", "onednn_upsampled_conv2d"],
        reorders_sums=True,
    )
    register.pass_(
        "onednn_chain_conv2d",
        f"{__package__}.passes.conv_chain:chain_convolutions",
        place="cpu",
        library="onednn",
        after=["onednn_fuse_conv2d", "onednn_fuse_squeeze_excite", "onednn_upsampled_conv2d", "onednn_winograd"],
        reorders_sums=True,
    )
