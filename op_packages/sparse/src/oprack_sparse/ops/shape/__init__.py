"""Ops that move elements."""
