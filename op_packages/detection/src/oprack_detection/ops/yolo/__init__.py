"""Definitions of YOLO."""
