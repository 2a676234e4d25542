"""crf_decoding by the compiled Viterbi algorithm (`c/viterbi.c`), sequence by sequence."""

from __future__ import annotations

from ctypes import Structure, addressof, c_int64, c_void_p

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels._numbers import is_ordinary
from oprack_onednn.kernels.declare import onednn_kernel


class _Paths(Structure):
    """The struct of viterbi.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("count", "tags")),
        *((name, c_void_p) for name in ("emission", "transition", "first", "lengths", "path")),
    )


@onednn_kernel("crf_decoding", unread=("Label", "Length"))
def crf_decoding(
    Emission: Array, Transition: Array, Label: Array | None = None, Length: Array | None = None, *, ctx: KernelContext
) -> Array:
    tags = Emission.shape[-1]
    if not LIBRARY.usable() or Emission.dtype != FLOAT or Transition.dtype != FLOAT or not Emission.size:
        return NotImplemented
    emission = np.ascontiguousarray(Emission).reshape(-1, tags)
    if Transition.shape != (2 + tags, tags) or (Label is not None and Label.size != len(emission)):
        return NotImplemented
    if not (is_ordinary(emission) and Transition.max() < np.inf):
        return NotImplemented  # NumPy's maximum is NaN where there is one; a comparison passes it over
    lod = ctx.lod("Emission")
    if Length is None:
        ends = np.array(lod[-1] if lod else [0], np.int64)
        first, lengths, rows = ends[:-1], np.diff(ends), int(ends[-1])
    else:
        batch, width = Emission.shape[:2]
        lengths = Length.reshape(-1).astype(np.int64)
        first, rows = np.arange(len(lengths), dtype=np.int64) * width, batch * width
        if len(lengths) != batch or (lengths < 0).any() or (lengths > width).any():
            return NotImplemented
    path = _decoded(emission, Transition, first, lengths) if rows == len(emission) else None
    if path is None:
        return NotImplemented
    if Label is not None:
        path = (path == Label.reshape(-1)).astype(np.int64)
    if Length is None:
        return path.reshape(-1, 1)
    path = path.reshape(Emission.shape[:2])
    if Label is not None:  # what lies past the end of a sequence is not right either
        path *= np.arange(path.shape[1]) < lengths.reshape(-1, 1)
    return path


def _decoded(emission: Array, transition: Array, first: Array, lengths: Array) -> Array | None:
    """The best label of each row, 0 outside of the sequences; None where the compiled code does not serve.

    Args:
        emission: [rows, tags].
        transition: [2 + tags, tags].
        first: The row in which each sequence begins.
        lengths: Of the sequences, which lie within the rows.
    """
    path, transition = np.zeros(len(emission), np.int64), np.ascontiguousarray(transition)
    arrays = emission, transition, np.ascontiguousarray(first), lengths, path
    if RUNNER.viterbi is None or not all(a.flags.aligned for a in arrays):
        return None
    paths = _Paths(len(lengths), emission.shape[1], *map(address, arrays))
    return None if RUNNER.viterbi(addressof(paths)) else path
