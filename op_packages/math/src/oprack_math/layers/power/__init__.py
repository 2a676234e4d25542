"""Layers of powers."""
