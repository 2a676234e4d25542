"""Layers that wrap what packages define, and small nets of families that no package on PyPI carries."""
