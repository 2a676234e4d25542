"""Layers of element-wise arithmetic with two inputs that broadcast."""
