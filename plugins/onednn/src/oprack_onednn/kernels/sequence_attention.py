"""sequence_attention and its gradient, head by head of each sequence, as long as it is (attention.c)."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, c_float, c_int64, c_uint32, c_void_p, cast

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels.declare import onednn_kernel

_SHARED = 1 << 20
"""Multiplications from which on threads share the work."""


class _Attention(Structure):
    """The struct of attention.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("sequences", "heads", "kv_heads", "width", "value_width")),
        *((name, c_int64) for name in ("before", "behind", "from_end", "furthest")),
        *((name, c_int64) for name in ("q_row", "q_head", "k_row", "k_head", "v_row", "v_head")),
        *((name, c_void_p) for name in ("q_offsets", "k_offsets", "q", "k", "v", "bias", "out", "lse", "out_grad")),
        *((name, c_void_p) for name in ("q_grad", "k_grad", "v_grad", "product")),
        *((name, c_float) for name in ("scale", "kept")),
        *((name, c_uint32) for name in ("dropped", "seed")),
        ("failed", c_int64),
    )


class _Call:
    """One call of attention.c: its struct, and what that refers to.

    Args:
        inputs: Q, K and V.
        bias: RelativeBias.
        ctx: Of the op.
        scale, causal, window: Its attributes.
        dropout: The probability of a weight of 0.
    """

    def __init__(
        self,
        inputs: Sequence[Array],
        bias: Array | None,
        ctx: KernelContext,
        scale: float,
        causal: bool,
        window: Sequence[int],
        dropout: float,
    ) -> None:
        q, k, v = self._inputs = [_rows(x) for x in inputs]
        self._bias = None if bias is None else np.ascontiguousarray(bias)
        self._offsets = [_offsets(ctx, slot) for slot in ("Q", "K")]
        (heads, width), kv_heads, call = q.shape[1:], k.shape[1], _Attention()
        call.sequences, call.heads, call.kv_heads = len(self._offsets[0]) - 1, heads, kv_heads
        call.width, call.value_width = width, v.shape[2]
        call.before, call.behind, call.from_end = window[0], 0 if causal else window[1], causal
        for name, x in zip("qkv", self._inputs, strict=True):
            setattr(call, name, address(x))
            setattr(call, f"{name}_row", x.strides[0] // x.itemsize)
            setattr(call, f"{name}_head", x.strides[1] // x.itemsize)
        call.q_offsets, call.k_offsets = map(address, self._offsets)
        if self._bias is not None:
            call.bias, call.furthest = address(self._bias), self._bias.shape[1] // 2
        call.scale = scale or width**-0.5
        call.product = cast(LIBRARY.lib.dnnl_sgemm, c_void_p).value
        call.dropped = min(round(dropout * 2**32), 2**32 - 1)
        call.kept = 1 / (1 - dropout) if dropout < 1 else 0
        self.struct = call
        queries, keys = map(np.diff, self._offsets)
        work = int(queries @ keys) * heads * (width + v.shape[2]) if len(queries) == len(keys) else 0
        self._threads = THREAD.max_threads if THREAD.ready() and work >= _SHARED else 1

    @property
    def serves(self) -> bool:
        """Whether all arrays are what native code reads; else NumPy's kernel computes, or says what is wrong."""
        (q, k, v), (a, b) = self._inputs, self._offsets
        arrays = [*self._inputs, *([] if self._bias is None else [self._bias])]
        return (
            all(x.dtype == FLOAT and x.flags.aligned and x.size for x in arrays)
            and k.shape[:2] == v.shape[:2]
            and q.shape[2] == k.shape[2]
            and q.shape[1] % k.shape[1] == 0
            and (self._bias is None or (len(self._bias) == q.shape[1] and self._bias.shape[1] % 2 == 1))
            and len(a) == len(b) > 0
            and all(o[0] == 0 and o[-1] == len(x) and (np.diff(o) >= 0).all() for o, x in ((a, q), (b, k)))
            and THREAD.ready()
        )

    def run(self) -> None:
        """Compute. Raises MemoryError when there is no room for scores."""
        assert RUNNER.attention is not None
        THREAD.use(self._threads)
        if RUNNER.attention(addressof(self.struct), self._threads):
            raise MemoryError(
                f"the scores of {self.struct.sequences} sequences: there was no memory for a part of them"
            )


def _rows(x: Array) -> Array:
    """x, whose heads are rows without gaps."""
    size, (_, _, width) = x.itemsize, x.shape
    gapless = x.strides[2] == size and x.strides[1] >= width * size and x.strides[0] >= x.strides[1]
    return x if gapless and not (x.strides[0] % size or x.strides[1] % size) else np.ascontiguousarray(x)


def _offsets(ctx: KernelContext, slot: str) -> np.ndarray:
    lod = ctx.lod(slot)
    return np.ascontiguousarray(lod[-1] if lod else [], np.int64)


@onednn_kernel("sequence_attention", min_numel="costly")
def sequence_attention(
    Q: Array,
    K: Array,
    V: Array,
    RelativeBias: Array | None = None,
    *,
    scale: float,
    causal: bool,
    window: list[int],
    dropout_p: float,
    is_test: bool,
    seed: int,
    ctx: KernelContext,
) -> tuple[Array, Array, Array | None]:
    if RUNNER.attention is None:
        return NotImplemented
    drops = dropout_p > 0 and not is_test
    call = _Call((Q, K, V), RelativeBias, ctx, scale, causal, window, dropout_p if drops else 0.0)
    if not call.serves:
        return NotImplemented
    drawn = ctx.generator(seed).integers(1, 1 << 31, 1) if drops else None
    if drawn is not None:
        call.struct.seed = int(drawn[0])
    out, lse = BUFFERS.take((*Q.shape[:2], V.shape[2])), BUFFERS.take(Q.shape[:2])
    call.struct.out, call.struct.lse = address(out), address(lse)
    call.run()
    return out, lse, drawn


@onednn_kernel("sequence_attention_grad", min_numel="costly", unread=("DropoutSeed",))
def sequence_attention_grad(
    Q: Array,
    K: Array,
    V: Array,
    RelativeBias: Array | None = None,
    Out: Array | None = None,
    LogSumExp: Array | None = None,
    DropoutSeed: Array | None = None,
    Out_grad: Array | None = None,
    *,
    scale: float,
    causal: bool,
    window: list[int],
    dropout_p: float,
    ctx: KernelContext,
) -> tuple[Array | None, ...]:
    if RUNNER.attention is None or RelativeBias is not None or Out is None or LogSumExp is None or Out_grad is None:
        return NotImplemented  # sums by distance are NumPy's
    call = _Call((Q, K, V), None, ctx, scale, causal, window, 0.0 if DropoutSeed is None else dropout_p)
    if DropoutSeed is not None:
        call.struct.seed = int(DropoutSeed[0])
    kept = [np.ascontiguousarray(x, FLOAT) for x in (Out, LogSumExp, Out_grad)]
    if not call.serves or [x.shape for x in kept] != [(*Q.shape[:2], V.shape[2]), Q.shape[:2], Out.shape]:
        return NotImplemented
    struct = call.struct
    struct.out, struct.lse, struct.out_grad = map(address, kept)
    found = BUFFERS.take(Q.shape), BUFFERS.take(K.shape), BUFFERS.take(V.shape)
    for x in found[1:]:
        x[...] = 0  # what is found is added
    struct.q_grad, struct.k_grad, struct.v_grad = map(address, found)
    call.run()
    return (*found, None)
