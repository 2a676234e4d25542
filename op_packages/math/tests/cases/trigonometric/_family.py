"""Inputs of the second and third gradients of sin and cos."""

from __future__ import annotations

import numpy as np

from .._gradients import A2, DDX, DOUT, A, X

SIN, COS = np.sin(X), np.cos(X)
SECOND = {"X": X, "grad_out": DOUT, "grad_x@GRAD": DDX}
THIRD = {"X": X, "grad_out_forward": DOUT, "grad_x_grad_forward": DDX, "grad_x@GRAD": A, "grad_out_grad@GRAD": A2}
