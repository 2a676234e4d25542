"""Collectives over MPI, and the command `oprack launch`."""
