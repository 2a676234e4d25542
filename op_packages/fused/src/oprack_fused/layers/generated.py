"""Layers that are made from the OpProtos of their ops; `layers.fc` makes a weight of its own and is the pack nn's."""

from __future__ import annotations

from oprack.layers import generated_layers

__getattr__ = generated_layers(
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "fused_softmax_mask",
    "fused_softmax_mask_upper_triangle",
    "fusion_seqpool_concat",
    "self_dp_attention",
    "skip_layernorm",
)
