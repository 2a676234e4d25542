"""Layers of this pack: functions that append its ops to a program; ops.toml names them."""

from __future__ import annotations

from oprack.layers import generated_layers

# Layers that are made from the OpProtos of their ops.
__getattr__ = generated_layers(
    "dequantize_abs_max",
    "dequantize_linear",
    "dequantize_log",
    "fake_channel_wise_dequantize_max_abs",
    "fake_channel_wise_quantize_abs_max",
    "fake_channel_wise_quantize_dequantize_abs_max",
    "fake_dequantize_max_abs",
    "fake_quantize_abs_max",
    "fake_quantize_dequantize_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_range_abs_max",
    "lookup_table_dequant",
    "moving_average_abs_max_scale",
    "quantize_linear",
)
