"""Definitions of tables of quantized numbers."""
