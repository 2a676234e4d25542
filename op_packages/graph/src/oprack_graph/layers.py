"""Layers of the ops of this pack."""

from __future__ import annotations

from oprack.layers import generated_layers

# Layers that are made from the OpProtos of their ops.
__getattr__ = generated_layers("graph_reindex", "graph_send_recv", "graph_send_ue_recv", "graph_send_uv")
