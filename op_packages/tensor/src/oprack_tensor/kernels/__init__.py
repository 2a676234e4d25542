"""Kernels; each module is imported on the first use of its op at a place."""
