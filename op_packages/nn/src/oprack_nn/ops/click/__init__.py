"""Definitions of ops for models of clicks: their features and statistics."""
