"""Layers of this pack: functions that append its ops to a program; ops.toml names them."""

from __future__ import annotations

from oprack.layers import generated_layers

# Layers that are made from the OpProtos of their ops.
__getattr__ = generated_layers("fft_c2c", "fft_c2r", "fft_r2c", "frame", "overlap_add", "stft")
