"""Modules on several ranks: their parameters, gradients, optimizers and stages."""
