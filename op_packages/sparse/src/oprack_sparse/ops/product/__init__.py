"""Ops that multiply matrices."""
