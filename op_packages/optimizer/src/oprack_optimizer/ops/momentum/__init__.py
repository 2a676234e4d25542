"""Definitions of gradient descent with momentum."""
