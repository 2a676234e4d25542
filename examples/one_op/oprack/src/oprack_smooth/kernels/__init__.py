"""Kernels; a module is imported when one of its ops is first used."""
