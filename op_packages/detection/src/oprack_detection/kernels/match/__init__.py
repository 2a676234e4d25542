"""Kernels of ops that match boxes with ground truth and choose what a detector learns from."""
