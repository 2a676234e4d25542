"""Random ops: uniform and Gaussian values, integers, permutations, sampling."""
