"""Definitions of order statistics and of counts."""
