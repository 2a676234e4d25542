"""Definitions of boxes: coding, clipping, overlap."""
