"""Layers of this pack: functions that append its ops to a program; ops.toml names them."""

from __future__ import annotations

from oprack.layers import generated_layers

# Layers that are made from the OpProtos of their ops.
__getattr__ = generated_layers(
    "bilinear_tensor_product",
    "cholesky",
    "cholesky_solve",
    "determinant",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inverse",
    "lstsq",
    "lu",
    "lu_unpack",
    "matrix_power",
    "matrix_rank",
    "qr",
    "slogdeterminant",
    "solve",
    "spectral_norm",
    "svd",
    "triangular_solve",
)
