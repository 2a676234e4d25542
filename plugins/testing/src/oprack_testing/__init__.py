"""Hooks of the distribution for authors of packs."""
