"""Definitions of convolutions."""
