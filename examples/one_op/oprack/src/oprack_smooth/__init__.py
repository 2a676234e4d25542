"""Ops for oprack."""
