"""Definitions of metrics of detectors."""
