"""Quantisation of a trained model by inputs like those that it will see."""

from __future__ import annotations

from oprack_quantization.post_training.precision import choose_precisions
from oprack_quantization.post_training.quantize import quantize_post_training
from oprack_quantization.post_training.report import LayerReport, Quantized

__all__ = ["LayerReport", "Quantized", "choose_precisions", "quantize_post_training"]
