"""Kernels of chains of sequence ops."""
