"""The weights of a recurrent layer as primitives take them, and the chains that hold them."""

from __future__ import annotations

import numpy as np
from oprack.cache import Cache

from oprack_onednn.chain.thread import CHAINS, THREAD, PerThread
from oprack_onednn.dnnl.operands import OperandError

# cell -> gates of the weights, gates of the bias
GATES = {
    "gru": (3, 3),
    "lbr_gru": (3, 4),
    "lstm": (4, 4),
    "peephole_lstm": (4, 4),
    "relu": (1, 1),
    "tanh": (1, 1),
}
BOTH = 3
_LINE = 16  # float32 in a cache line
# Chains that are kept for the same weights and one thread.
_PRIMITIVES = 2048


class PrimitivesByThread:
    """Chains with the same weights, and pairs of these, of every thread that uses them."""

    def __init__(self) -> None:
        self._chains = PerThread()

    def own(self) -> Cache:
        """Those of this thread, to be added to."""
        THREAD.ready()
        key = (THREAD.setting,)
        found: Cache | None = self._chains[key]
        if found is None:
            found = self._chains.keep(key, Cache(_PRIMITIVES, CHAINS))
        return found


class Layer:
    """Weights of a layer's directions, as primitives take them, with the gates in oneDNN's order.

    cell: a key of GATES. w_input: [directions, inputs, gates, size]. w_state: [directions, size, gates, size]. bias:
    [directions, gates of the bias, size]. peepholes: of i, f and o, [directions, 3, size], for a cell "lstm" that has
    them.
    """

    def __init__(
        self,
        cell: str,
        w_input: np.ndarray,
        w_state: np.ndarray,
        bias: np.ndarray,
        peepholes: np.ndarray | None = None,
    ) -> None:
        self.cell = cell if peepholes is None else "peephole_lstm"
        self.has_cells = cell == "lstm"
        given = (w_input, w_state, bias, peepholes)
        self.directions, self.inputs, _, size = w_input.shape
        of_weights, of_bias = GATES[cell]
        shapes = [(self.inputs, of_weights, size), (size, of_weights, size), (of_bias, size), (3, size)]
        for array, shape in zip(given, shapes, strict=True):
            if array is not None and (array.shape != (self.directions, *shape) or array.dtype != np.float32):
                raise OperandError(
                    f"weights of {cell} have shape {array.shape} and dtype {array.dtype}; expected float32 of shape "
                    f"{(self.directions, *shape)}"
                )
        self.size, self._arrays = size, [_aligned(a) for a in given if a is not None]
        self.chains = PrimitivesByThread()

    def weights(self, direction: int, d: int) -> list[np.ndarray]:
        """Those of direction d, or of both."""
        return [a if direction == BOTH else a[d : d + 1] for a in self._arrays]


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins with a cache line, so that no vector of a row lies in two."""
    raw = np.empty(array.size + _LINE, np.float32)
    start = -raw.ctypes.data % (4 * _LINE) // 4
    copy = raw[start : start + array.size].reshape(array.shape)
    copy[...] = array
    return copy
