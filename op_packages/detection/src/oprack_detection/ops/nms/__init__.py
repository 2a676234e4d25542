"""Definitions of non-maximum suppression."""
