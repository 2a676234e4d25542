"""Op pack of mathematics: arithmetic, comparison, logic, unary functions, reductions, matrix products, norms."""
