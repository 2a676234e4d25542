"""Kernels of comparisons and of tests for infinities and NaN."""
