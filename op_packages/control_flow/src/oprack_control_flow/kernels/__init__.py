"""Kernels of the ops that need no scope."""
