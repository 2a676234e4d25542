"""crf_decoding by Viterbi's algorithm: a step is a sum over pairs of labels, and max pooling over the first of them.

Pooling also tells where it found the maximum, which is what the way back reads. Sequences of about the same length go
together, all for as many steps as the longest: what comes past the end of a sequence is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.parameters import FromConstants
from oprack_onednn.chain.primitive_chain import BoundChain, PrimitiveChain
from oprack_onednn.chain.side_by_side import run_all
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc, dims
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._numbers import is_ordinary
from oprack_onednn.kernels._recurrent import threads_for
from oprack_onednn.kernels.declare import onednn_kernel

_STEPS = 32  # of a block
_BOUND = 4  # steps of a chain
_INNER = 24  # from so many sequences on they are the innermost dim


class Block:
    """Some steps of n sequences with their own memory.

    Attributes:
        emission: [steps, n, tags], or with `inner` [steps, tags, n].
        best: The same, one longer: best[t + 1] is the best score of a path that ends in each label, made from
            best[t] and emission[t].
        back: The label before on that path.
    """

    def __init__(self, n: int, tags: int) -> None:
        self.inner = n >= _INNER
        strided = MemoryDesc.strided
        if self.inner:
            pairs, state = strided((tags, tags * n)), strided((1, tags * n))
            rows, width = tags, n
        else:
            pairs, state = strided((n, tags, tags)), strided((n, tags, 1))
            rows, width = n, tags
        image = strided((rows, width, tags, 1), (tags * width, 1, width, width))
        result = strided((rows, width, 1, 1), (width, 1, width, width))
        add = primitive_desc("binary", LIBRARY.engine, _c.BINARY_ADD, pairs, state, pairs, Attributes())
        window = (dims(v) for v in ((1, 1), (tags, 1), (0, 0), (0, 0), (0, 0)))
        kind = (_c.FORWARD_TRAINING, _c.POOLING_MAX)  # training: it tells where the maximum was
        plus = Attributes([("binary", _c.BINARY_ADD, result)])
        best = primitive_desc("pooling_forward", LIBRARY.engine, *kind, image, result, *window, plus)
        where = best.desc(_c.QUERY_WORKSPACE_MD)
        if where.nbytes != n * tags:
            raise NotServedError(f"{tags} labels do not fit in a byte")
        shape = (tags, n) if self.inner else (n, tags)
        self.emission = np.zeros((_STEPS, *shape), np.float32)
        self.best = np.zeros((_STEPS + 1, *shape), np.float32)
        self.back = np.zeros((_STEPS, n * tags), np.uint8)
        # Several short chains for a block, so that a short sequence does not run all of its steps.
        self._chains = []
        for start in range(0, _STEPS, _BOUND):
            chain = PrimitiveChain()
            sums, fixed = chain.temporary(pairs), [None]
            follow = chain.input(pairs)
            for t in range(start, start + _BOUND):
                chain.add(add, {_c.SRC: follow, _c.SRC_1: chain.input(state), _c.DST: sums})
                memory = {_c.POST_OP | _c.SRC_1: chain.input(result), _c.DST: chain.output(result)}
                memory[_c.WORKSPACE] = chain.output(where, np.uint8)
                chain.add(best, memory | {_c.SRC: chain.alias(sums, image)})
                fixed += [self.best[t], self.emission[t], self.best[t + 1], self.back[t]]
            self._chains.append(BoundChain(chain, fixed))

    def run(self, steps: int, pairs: Array) -> None:
        """The first steps; pairs: what `_pairs` made of the transitions."""
        run_all([(chain, (pairs,)) for chain in self._chains[: -(-steps // _BOUND)]])


def _pairs(arrays: tuple[Array, ...], n: int) -> Array:
    """Scores of one label after another for n sequences, as Block takes them."""
    follow = np.ascontiguousarray(arrays[0][2:])  # a tile of one keeps the order of a transposed matrix
    if n >= _INNER:
        return np.repeat(follow.T.reshape(-1), n)
    return np.tile(follow, (n, 1, 1))


_PAIRS = FromConstants(_pairs)


@onednn_kernel("crf_decoding", unread=("Label", "Length"))
def crf_decoding(
    Emission: Array, Transition: Array, Label: Array | None = None, Length: Array | None = None, *, ctx: KernelContext
) -> Array:
    emission = np.ascontiguousarray(Emission).reshape(-1, Emission.shape[-1])
    if emission.dtype != FLOAT or (Label is not None and Label.size != len(emission)):
        return NotImplemented
    if not (is_ordinary(emission) and Transition.max() < np.inf):
        return NotImplemented  # NumPy's maximum is NaN where there is one; pooling passes it over
    if Length is None:
        lod = ctx.lod("Emission")
        path = _by_lod(emission, Transition, lod[-1] if lod else [0])
    else:
        path = _by_length(emission, Transition, Length.reshape(-1).astype(np.int64), *Emission.shape[:2])
    if path is None:
        return NotImplemented
    if Label is not None:
        path = (path == Label.reshape(-1)).astype(np.int64)
    if Length is None:
        return path.reshape(-1, 1)
    path = path.reshape(Emission.shape[:2])
    if Label is not None:  # what lies past the end of a sequence is not right either
        path *= np.arange(path.shape[1]) < Length.reshape(-1, 1)
    return path


def _by_lod(emission: np.ndarray, transition: np.ndarray, offsets: Sequence[int]) -> np.ndarray | None:
    """The best labels of sequences that lie one after the other; None when oneDNN does not serve them."""
    if offsets[-1] != len(emission):
        return None
    with threads_for(0):
        return _by_offsets(emission, transition, offsets)


def _by_length(
    emission: np.ndarray, transition: np.ndarray, lengths: np.ndarray, batch: int, width: int
) -> np.ndarray | None:
    """The best labels of padded sequences; None when oneDNN does not serve them."""
    if len(lengths) != batch or (lengths < 0).any() or (lengths > width).any():
        return None
    with threads_for(0):
        return _decode_all(emission, transition, np.arange(batch) * width, lengths)


def _block(n: int, tags: int) -> Block:
    return THREAD.primitive(("viterbi", n, tags), Block, n, tags)


def _by_offsets(emission: Array, transition: Array, offsets: Sequence[int]) -> Array | None:
    """Paths of sequences with these offsets; None when oneDNN does not serve them."""
    if len(offsets) > 3 or offsets[-1] == 0:
        ends = np.array(offsets)
        return _decode_all(emission, transition, ends[:-1], np.diff(ends))
    block = _block(1, emission.shape[1])
    if block is None:
        return None
    path, pairs = np.empty(len(emission), np.int64), _PAIRS((transition,), 1)
    for start, end in pairwise(offsets):
        if end > start:
            path[start:end] = _decode_one(block, pairs, emission[start:end], transition)
    return path


def _decode_all(emission: Array, transition: Array, first: Array, lengths: Array) -> Array | None:
    """The path of every row, 0 outside of the sequences; None when oneDNN does not serve it."""
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    # many together are faster, but all go as many steps as the longest of them
    count = len(order)
    size = count if count <= 8 else 16 if count < 64 else 32 if count < 128 else 64
    block = _block(size, emission.shape[1]) if size else None
    if block is None:
        return None
    path, pairs = np.zeros(len(emission), np.int64), _PAIRS((transition,), size)
    for at in range(0, count, size):
        group = order[at : at + size]
        if len(group) < size:
            group = np.append(group, np.repeat(group[-1], size - len(group)))
        _decode(block, pairs, emission, transition, first[group], lengths[group], path)
    return path


def _decode_one(block: Block, pairs: Array, emission: Array, transition: Array) -> list[int]:
    """Labels of one sequence with rows `emission`. pairs: the transitions as the block takes them."""
    best, back, tags = block.best, b"", emission.shape[1]
    steps, last = len(emission), 0
    np.add(emission[0], transition[0], best[0, 0])
    for start in range(1, steps, _STEPS):
        if last:
            best[0] = best[last]
        last = min(_STEPS, steps - start)
        block.emission[:last, 0] = emission[start : start + last]
        block.run(last, pairs)
        back += block.back[:last].tobytes()
    label = int((best[last, 0] + transition[1]).argmax())
    labels = [label]
    for at in range(len(back) - tags, -1, -tags):
        label = back[at + label]
        labels.append(label)
    return labels[::-1]


def _decode(
    block: Block, pairs: Array, emission: Array, transition: Array, first: Array, lengths: Array, path: Array
) -> None:
    """Write the paths of sequences, longest first."""
    n, tags = len(first), emission.shape[1]
    last, steps = lengths - 1, int(lengths[0])
    # past its end a sequence stays at its last row
    rows = first + np.minimum(np.arange(steps)[:, None], last)
    back = np.empty((steps, n * tags), np.uint8)
    final = np.empty((n, tags), np.float32)
    begin = emission[rows[0]] + transition[0]
    block.best[0] = begin.T if block.inner else begin
    columns = np.arange(n)
    final[last == 0] = begin[last == 0]
    for start in range(1, steps, _STEPS):
        count = min(_STEPS, steps - start)
        if block.inner:
            block.emission[:count] = emission[rows[start : start + count]].transpose(0, 2, 1)
        else:
            emission.take(rows[start : start + count], axis=0, out=block.emission[:count], mode="clip")
        block.run(count, pairs)
        back[start : start + count] = block.back[:count]
        ends = np.flatnonzero((last >= start) & (last < start + count))
        at = last[ends] - start + 1
        final[ends] = block.best[at, :, ends] if block.inner else block.best[at, ends]
        block.best[0] = block.best[count]
    label = (final + transition[1]).argmax(axis=1)
    labels = np.empty((steps, n), np.int64)
    factor, offset = (n, columns) if block.inner else (1, columns * tags)
    running = np.searchsorted(-lengths, -np.arange(steps)).tolist()  # sequences longer than t
    for t in range(steps - 1, 0, -1):
        labels[t] = label
        m = running[t]
        label[:m] = back[t].take(label[:m] * factor + offset[:m])
    labels[0] = label
    path[rows] = labels
