"""Functions of tensors written down as programs: `oprack.to_program` and `oprack.jit`."""

from __future__ import annotations

from oprack.capture.jit import jit
from oprack.capture.to_program import InputSpec, TracedProgram, to_program

__all__ = ["InputSpec", "TracedProgram", "jit", "to_program"]
