"""Definitions of resampling."""
