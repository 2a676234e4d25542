"""Layers of this pack: functions that append its ops to a program; ops.toml names them."""

from __future__ import annotations

from oprack.layers import generated_layers

# Layers that are made from the OpProtos of their ops; `layers.fc` makes a weight of its own and is the pack nn's.
__getattr__ = generated_layers(
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "fused_softmax_mask",
    "fused_softmax_mask_upper_triangle",
    "fusion_seqpool_concat",
    "self_dp_attention",
    "skip_layernorm",
)
