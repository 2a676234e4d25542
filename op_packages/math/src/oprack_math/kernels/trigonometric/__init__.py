"""Kernels of trigonometric and hyperbolic functions and of their inverses."""
