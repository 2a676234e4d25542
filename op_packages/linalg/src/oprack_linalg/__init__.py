"""Op pack of linear algebra: factorizations, eigenvalues, systems of equations, determinants."""
