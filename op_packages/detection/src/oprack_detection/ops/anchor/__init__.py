"""Definitions of anchors and prior boxes."""
