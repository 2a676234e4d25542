"""crf_decoding by Viterbi's algorithm: a step is a sum over pairs of labels, and max pooling over the first of them.

Pooling also tells where it found the maximum, which is what the way back reads. Sequences of about the same length go
together, all for as many steps as the longest: what comes past the end of a sequence is not looked at.
"""

from __future__ import annotations

import numpy as np

from oprack_onednn import _c
from oprack_onednn.kernels._recurrent import FromConstants
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import address
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError, PrimitiveDesc, dims
from oprack_onednn.plan import THREAD, BoundPlan, Plan
from oprack_onednn.served import served

_STEPS = 32  # of a block
_BOUND = 4  # steps of a plan
_INNER = 24  # from so many sequences on they are the innermost dim


class Block:
    """Some steps of n sequences with their own memory.

    emission: [steps, n, tags], or with `inner` [steps, tags, n]. best: alike, one longer: best[t + 1] is the best score
    of a path that ends in each label, made from best[t] and emission[t]. back: uint8, the label before on that path.
    """

    def __init__(self, n, tags):
        self.inner = n >= _INNER
        pairs, state = (n, tags, tags), (n, tags, 1)
        rows, width = n, tags
        if self.inner:
            pairs, state = (tags, tags * n), (1, tags * n)
            rows, width = tags, n
        image = MemoryDesc.strided((rows, width, tags, 1), (tags * width, 1, width, width))
        result = MemoryDesc.strided((rows, width, 1, 1), (width, 1, width, width))
        pairs, state = MemoryDesc.strided(pairs), MemoryDesc.strided(state)
        add = PrimitiveDesc("binary", LIBRARY.engine, _c.BINARY_ADD, pairs, state, pairs, Attributes())
        window = (dims(v) for v in ((1, 1), (tags, 1), (0, 0), (0, 0), (0, 0)))
        kind = (_c.FORWARD_TRAINING, _c.POOLING_MAX)  # training: it tells where the maximum was
        plus = Attributes([("binary", _c.BINARY_ADD, result)])
        best = PrimitiveDesc("pooling_forward", LIBRARY.engine, *kind, image, result, *window, plus)
        where = best.desc(_c.QUERY_WORKSPACE_MD)
        if where.nbytes != n * tags:
            raise NotServedError(f"{tags} labels do not fit in a byte")
        shape = (tags, n) if self.inner else (n, tags)
        self.emission = np.zeros((_STEPS, *shape), np.float32)
        self.best = np.zeros((_STEPS + 1, *shape), np.float32)
        self.back = np.zeros((_STEPS, n * tags), np.uint8)
        self._plans = []
        for start in range(0, _STEPS, _BOUND):
            plan = Plan()
            sums, fixed = plan.temporary(pairs), [0]
            follow = plan.input(pairs)
            for t in range(start, start + _BOUND):
                plan.add(add, {_c.SRC: follow, _c.SRC_1: plan.input(state), _c.DST: sums})
                memory = {_c.POST_OP | _c.SRC_1: plan.input(result), _c.DST: plan.output(result)}
                memory[_c.WORKSPACE] = plan.output(where)
                plan.add(best, memory | {_c.SRC: plan.alias(sums, image)})
                fixed += map(address, (self.best[t], self.emission[t], self.best[t + 1], self.back[t]))
            self._plans.append(BoundPlan(plan, fixed))

    def run(self, steps, follow):
        """The first steps; follow: address of the transitions as `pairs` gives them."""
        for plan in self._plans[: -(-steps // _BOUND)]:
            plan.run(follow)


def _pairs(arrays, n):
    """Scores of one label after another for n sequences, as Block takes them."""
    follow = arrays[0][2:]
    if n >= _INNER:
        return np.repeat(follow.T.reshape(-1), n)
    return np.tile(follow, (n, 1, 1))


_PAIRS = FromConstants(_pairs)


@served("crf_decoding")
def crf_decoding(Emission, Transition, Label=None, Length=None, *, ctx):
    tags = Emission.shape[-1]
    if Length is None:
        lod = ctx.lod("Emission")
        offsets = np.array(lod[-1] if lod else [0])
        first, lengths = offsets[:-1], np.diff(offsets)
    else:
        batch, width = Emission.shape[:2]
        first, lengths = np.arange(batch) * width, Length.reshape(-1).astype(np.int64)
        if len(lengths) != batch or (lengths < 0).any() or (lengths > width).any():
            return NotImplemented
    emission = np.ascontiguousarray(Emission).reshape(-1, tags)
    path = np.zeros(len(emission), np.int64)
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    size = _together(len(order))
    block = THREAD.plan(("viterbi", size, tags), Block, size, tags) if size else None
    if block is None:
        return NotImplemented
    pairs = _PAIRS((Transition,), size)
    for at in range(0, len(order), size):
        group = order[at : at + size]
        if size == 1:
            start = int(first[group[0]])
            rows = slice(start, start + int(lengths[group[0]]))
            _decode_one(block, pairs, emission[rows], Transition, path[rows])
            continue
        if len(group) < size:
            group = np.append(group, np.repeat(group[-1], size - len(group)))
        _decode(block, pairs, emission, Transition, first[group], lengths[group], path)
    if Label is not None:
        path = (path == Label.reshape(-1)).astype(np.int64)
    path = path.reshape(Emission.shape[:2] if Length is not None else (-1, 1))
    if Label is not None and Length is not None:
        path *= np.arange(path.shape[1]) < lengths[:, None]
    return path


def _together(count):
    """How many of some sequences go together: many for speed, few so that they are about as long as each other."""
    if count <= 2:
        return min(count, 1)
    if count <= 8:
        return count
    return 16 if count < 64 else 32 if count < 128 else 64


def _decode_one(block, pairs, emission, transition, path):
    """Write the path of one sequence with rows `emission`."""
    follow, steps, tags = address(pairs), len(emission), emission.shape[1]
    best, back = block.best, b""
    np.add(emission[0], transition[0], out=best[0, 0])
    last = 0
    for start in range(1, steps, _STEPS):
        best[0] = best[last]  # of the block before
        last = min(_STEPS, steps - start)
        block.emission[:last, 0] = emission[start : start + last]
        block.run(last, follow)
        back += block.back[:last].tobytes()
    label = int((best[last, 0] + transition[1]).argmax())
    labels = [label]
    for at in range(len(back) - tags, -1, -tags):
        label = back[at + label]
        labels.append(label)
    path[:] = labels[::-1]


def _decode(block, pairs, emission, transition, first, lengths, path):
    """Write the paths of sequences, longest first."""
    n, tags = len(first), emission.shape[1]
    follow, last = address(pairs), lengths - 1
    steps = int(lengths[0])
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
        block.run(count, follow)
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
