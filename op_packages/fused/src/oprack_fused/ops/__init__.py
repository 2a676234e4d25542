"""Definitions: all of an op but its kernels."""
