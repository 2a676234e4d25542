"""Kernels of recurrent nets that begin with a product."""
