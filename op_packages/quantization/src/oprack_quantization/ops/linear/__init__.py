"""Definitions of quantization by given scales, and of the way back."""
