"""Initializers that need a decomposition of matrices."""

from __future__ import annotations

from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.initializer import Initializer
from oprack.layers import Variable, append_op


class Orthogonal(Initializer):
    """gain times a matrix whose rows, or columns, are orthonormal: Q of the QR decomposition of normal numbers.

    Dims after the first count as one (Saxe et al. 2013).
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = float(gain)

    def __call__(self, var: Variable) -> None:
        if len(var.shape) < 2:
            raise InvalidArgumentError(
                f"Orthogonal: variable {var.name!r} has shape {list(var.shape)}; expected at least 2 dims"
            )
        rows, columns = var.shape[0], 1
        for size in var.shape[1:]:
            columns *= size
        tall = [max(rows, columns), min(rows, columns)]
        program, block, dtype = var.program, var.program.global_block(), var.desc.dtype
        assert dtype is not None  # parameters have one

        def made(op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], *slots: str) -> list[Variable]:
            names = [f"{var.name}.orthogonal_{len(block.ops)}_{slot}" for slot in slots]
            outs = [Variable(program, block, block.create_var(name, dtype=var.dtype)) for name in names]
            append_op(op_type, inputs, dict(zip(slots, outs, strict=True)), attrs, program=program, block=block)
            return outs

        (numbers,) = made("gaussian_random", {}, {"shape": tall, "dtype": int(dtype)}, "Out")
        q, r = made("qr", {"X": numbers}, {"mode": "reduced"}, "Q", "R")
        (diagonal,) = made("diag_v2", {"X": r}, {}, "Out")
        (signs,) = made("sign", {"X": diagonal}, {}, "Out")  # makes the draw uniform over all such matrices
        (q,) = made("elementwise_mul", {"X": q, "Y": signs}, {}, "Out")
        if rows < columns:
            q, _ = made("transpose2", {"X": q}, {"axis": [1, 0]}, "Out", "XShape")
        scaled = made("scale", {"X": q}, {"scale": self.gain}, "Out")[0]
        found, _ = made("reshape2", {"X": scaled}, {"shape": list(var.shape)}, "Out", "XShape")
        append_op("assign", {"X": found}, {"Out": var}, {}, program=program, block=block)
