"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl

# Module in layers/ -> the functions of it that are layers.
LAYERS = {
    "activation": """
        brelu celu elu gelu hard_shrink hard_sigmoid hard_swish leaky_relu log_softmax logsigmoid maxout
        mish prelu relu relu6 selu sigmoid silu soft_relu softmax softplus softshrink softsign stanh swish
        tanh_shrink thresholded_relu
    """,
    "common": """
        dropout embedding fc one_hot
    """,
    "conv": """
        adaptive_pool2d conv2d conv2d_transpose pool2d
    """,
    "image": """
        affine_channel grid_sampler image_resize pad pad2d pixel_shuffle resize_bilinear resize_nearest
        shuffle_channel temporal_shift unfold
    """,
    "loss": """
        bpr_loss cos_sim cross_entropy hinge_loss huber_loss kldiv_loss label_smooth log_loss
        margin_rank_loss mse_loss rank_loss sigmoid_cross_entropy_with_logits smooth_l1
        softmax_with_cross_entropy square_error_cost
    """,
    "norm": """
        batch_norm group_norm instance_norm layer_norm
    """,
}

# Functions of layers/nets.py, found as oprack.nets.<name>.
NETS = ("glu", "img_conv_group", "scaled_dot_product_attention", "simple_img_conv_pool")

# Module in modules/ -> its classes, found as oprack.nn.<name>.
MODULES = {
    "activation": "ELU GELU Hardsigmoid Hardswish LeakyReLU LogSoftmax ReLU ReLU6 Sigmoid Softmax Softplus Swish Tanh",
    "common": "Dropout Embedding Flatten Linear",
    "conv": "AvgPool2D AdaptiveAvgPool2D Conv2D Conv2DTranspose MaxPool2D",
    "loss": "CrossEntropyLoss L1Loss MSELoss",
    "norm": "BatchNorm GroupNorm InstanceNorm LayerNorm",
}


# Role of oprack.op.vocabulary -> the op of this pack that plays it.
ROLES = {
    "softmax_along": "softmax",
}


# Blocks of nets in fuzz.py, which oprack.testing.fuzz puts together.
BLOCKS = """
    affine attention conv_bn_act depthwise_separable feed_forward fully_connected inception inverted_residual
    layer_normed pool pyramid residual_basic residual_bottleneck squeeze_excite transposed upsampled_convolution
"""


@hookimpl
def oprack_ops(register):
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_vocabulary(register):
    """Which ops `x + y`, x[0], x.sum() and the backward pass call."""
    for role, op_type in ROLES.items():
        register.role(role, op_type)


@hookimpl
def oprack_layers(register):
    """Functions that append ops to a program, found as oprack.layers.<name> and imported on first use."""
    for module, names in LAYERS.items():
        register.layers(f"{__package__}.layers.{module}", *names.split())
    register.layers(f"{__package__}.layers.nets", *NETS, namespace="nets")
    for module, names in MODULES.items():
        register.layers(f"{__package__}.modules.{module}", *names.split(), namespace="nn")
    register.layers(f"{__package__}.fuzz", *BLOCKS.split(), namespace="fuzz")


@hookimpl
def oprack_passes(register):
    """Rewrites of graphs."""
    for name in ("layer_norm", "activations"):
        register.pass_(
            f"fuse_{name}",
            f"{__package__}.passes.written_out:fuse_{name}",
            stage="canonicalize",
            before=["hoist_slices"],
            reorders_sums=True,
        )
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
