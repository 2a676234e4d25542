"""A kernel library of SciPy's special functions, with a pass, for ops of other packs."""
