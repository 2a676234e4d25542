"""Layers made from OpProtos: `relu(x, name=None)`, `leaky_relu(x, alpha=0.02, name=None)` ..."""

from __future__ import annotations

from oprack.layers import generated_layers

__getattr__ = generated_layers(
    "brelu",
    "celu",
    "elu",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_relu",
    "softplus",
    "softshrink",
    "softsign",
    "stanh",
    "swish",
    "tanh_shrink",
    "thresholded_relu",
    maxout="maxout",
    affine_channel=("affine_channel", {}),
    bpr_loss=("bpr_loss", {"X": "input"}),
    cos_sim=("cos_sim", {}),
    grid_sampler=("grid_sampler", {}),
    hinge_loss=("hinge_loss", {"Logits": "input", "Labels": "label"}),
    kldiv_loss=("kldiv_loss", {}),
    pad=("pad", {}),
    pixel_shuffle=("pixel_shuffle", {}),
    rank_loss=("rank_loss", {}),
    shuffle_channel=("shuffle_channel", {}),
    temporal_shift=("temporal_shift", {}),
)
