"""crf_decoding by Viterbi's algorithm in native code, whose threads take sequences in turns."""

from __future__ import annotations

from ctypes import Structure, addressof, c_int64, c_void_p

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.parameters import FromConstants
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels._numbers import is_ordinary
from oprack_onednn.kernels.declare import onednn_kernel

_SHARED = 1 << 18
"""Pairs of labels, in all rows, from which on threads share the sequences; a pair takes about 0.1 ns."""
_LINE = 16  # floats


class _Viterbi(Structure):
    """The struct of viterbi.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("count", "tags", "width", "longest")),
        *((name, c_void_p) for name in ("first", "lengths", "emission", "start", "stop", "follow", "scratch", "path")),
    )


def _transitions(arrays: tuple[Array, ...]) -> Array:
    """Scores of the first, the last, and of one label behind another one, in rows that begin with a cache line."""
    (given,) = arrays
    padded = np.zeros((len(given), -(-given.shape[1] // _LINE) * _LINE), np.float32)
    padded[:, : given.shape[1]] = given
    return padded


_TRANSITIONS = FromConstants(_transitions)


@onednn_kernel("crf_decoding", unread=("Label", "Length"))
def crf_decoding(
    Emission: Array, Transition: Array, Label: Array | None = None, Length: Array | None = None, *, ctx: KernelContext
) -> Array:
    tags = Emission.shape[-1]
    emission = np.ascontiguousarray(Emission).reshape(-1, tags)
    if RUNNER.viterbi is None or not emission.flags.aligned or Transition.shape != (tags + 2, tags):
        return NotImplemented
    if emission.dtype != FLOAT or (Label is not None and Label.size != len(emission)):
        return NotImplemented
    if not (is_ordinary(emission) and Transition.max(initial=0) < np.inf):
        return NotImplemented  # NumPy's maximum is NaN where there is one; comparisons pass it over
    if Length is None:
        lod = ctx.lod("Emission")
        offsets = np.array(lod[-1] if lod else [0], np.int64)
        first, lengths, longest = offsets[:-1].copy(), np.diff(offsets), len(emission)
    else:
        lengths, longest = Length.reshape(-1).astype(np.int64), Emission.shape[1]
        if len(lengths) != Emission.shape[0]:
            return NotImplemented
        first = np.arange(len(lengths)) * longest
    if not _are_parts(first, lengths, longest, len(emission)) or not THREAD.ready():
        return NotImplemented
    path = _decoded(emission, _TRANSITIONS((Transition,)), first, lengths)
    if Label is not None:
        path = (path == Label.reshape(-1)).astype(np.int64)
    if Length is None:
        return path.reshape(-1, 1)
    path = path.reshape(Emission.shape[:2])
    if Label is not None:  # what lies past the end of a sequence is not right either
        path *= np.arange(path.shape[1]) < Length.reshape(-1, 1)
    return path


def _are_parts(first: Array, lengths: Array, longest: int, rows: int) -> bool:
    """Whether these are sequences of at most `longest` of so many rows, some of which are there."""
    if not lengths.any() or lengths.min() < 0 or lengths.max() > longest:
        return False
    return bool(first.min() >= 0 and (first + lengths).max() <= rows)


def _decoded(emission: Array, transitions: Array, first: Array, lengths: Array) -> Array:
    """The best label of each row, 0 outside of the sequences."""
    assert RUNNER.viterbi is not None
    tags, width, longest = emission.shape[1], transitions.shape[1], int(lengths.max())
    threads = THREAD.max_threads if len(emission) * tags * tags >= _SHARED else 1
    scratch, path = BUFFERS.take((threads, longest + 2, width)), np.zeros(len(emission), np.int64)
    arrays = (first, lengths, emission, transitions, transitions[1], transitions[2], scratch, path)
    work = _Viterbi(len(first), tags, width, longest, *map(address, arrays))
    RUNNER.viterbi(addressof(work), threads)
    return path
