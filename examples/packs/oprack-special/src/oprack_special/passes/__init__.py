"""Rewrites of graphs; a module is imported when a program is optimized."""
