"""Definitions of losses of detectors."""
