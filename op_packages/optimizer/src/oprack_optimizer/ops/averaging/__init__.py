"""Definitions of averages of parameters."""
