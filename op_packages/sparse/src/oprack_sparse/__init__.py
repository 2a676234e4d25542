"""Sparse tensors for oprack: COO and CSR, products, convolutions over points, attention over patterns."""
