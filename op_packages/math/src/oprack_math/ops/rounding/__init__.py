"""Definitions of ops that give whole numbers."""
