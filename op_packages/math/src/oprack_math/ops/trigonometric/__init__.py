"""Definitions of sin, cos and tanh."""
