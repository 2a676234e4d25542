"""Tensor arrays: written, read, counted, joined."""
