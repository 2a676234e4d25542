"""Kernels; they draw from `ctx.generator`, so that a run with the same program seed gives the same numbers."""
