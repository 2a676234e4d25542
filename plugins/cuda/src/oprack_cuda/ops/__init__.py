"""Ops that passes make for place cuda."""
