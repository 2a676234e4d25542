"""Kernels of activations."""
