"""Definitions of norms and of what limits them."""
