"""Definitions of fake quantization: floats that hold what integers would."""
