"""float16 and bfloat16 kernels for ops whose sources support float32 and wider. Products run unchanged, since cuBLAS
accumulates in float32; norms, pooling and losses run in float32, and their results are rounded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel_specs
from oprack.types import HALF_FLOATS
from oprack_nn.kernels import batch_norm, conv, norm, pool, prelu, softmax_with_cross_entropy

from oprack_cuda.wrap import declare, like, map_arrays

# Op types, whose gradients are meant as well, and the modules with their kernels.
AS_THEY_ARE = {
    "conv2d conv3d depthwise_conv2d conv2d_transpose conv3d_transpose depthwise_conv2d_transpose": conv,
}
IN_FLOAT32 = {
    "batch_norm": batch_norm,
    "group_norm instance_norm": norm,
    "prelu": prelu,
    "softmax_with_cross_entropy": softmax_with_cross_entropy,
    "pool2d pool3d": pool,
}

# outputs that stay float32: statistics, and gradients of float32 parameters
_WIDE = {"Scale_grad", "Bias_grad"}
# how many of the outputs in a tuple are rounded, where it is not the first alone
_ROUNDED = {"softmax_with_cross_entropy": 2}


def _as_it_is(spec: Any) -> Callable[..., Any]:
    function = spec.function
    takes_ctx = "ctx" in inspect.signature(function).parameters

    def call(*arguments: Array | None, ctx: KernelContext, **named: Any) -> Array | dict[str, Array]:
        return function(*arguments, **named, **({"ctx": ctx} if takes_ctx else {}))

    return declare(like(function, call, __name__), [spec.op_type], HALF_FLOATS, spec.deterministic)


def _in_float32(spec: Any) -> Callable[..., Any]:
    """Wrap a kernel to compute in float32 and round its results; in a dict, all but those named in _WIDE."""
    function, outputs = spec.function, _ROUNDED.get(spec.op_type, 1)
    takes_ctx = "ctx" in inspect.signature(function).parameters

    def call(
        *arguments: Array, ctx: KernelContext, xp: ArrayModule | None = None, **named: Any
    ) -> Array | tuple[Array, ...] | dict[str, Array]:
        half = next(a.dtype for a in arguments if hasattr(a, "dtype") and a.dtype.itemsize == 2)
        named |= {"ctx": ctx} if takes_ctx else {}
        named |= {"xp": xp} if xp is not None else {}
        wide = (map_arrays(a, lambda x: x.astype("float32") if x.dtype == half else x) for a in arguments)
        result = function(*wide, **named)
        if isinstance(result, dict):
            return {k: v if k in _WIDE or v is None else v.astype(half) for k, v in result.items()}
        if isinstance(result, tuple):
            return (*(r.astype(half) for r in result[:outputs]), *result[outputs:])
        return result.astype(half)

    return declare(like(function, call, __name__), [spec.op_type], HALF_FLOATS, spec.deterministic)


def _first_order(op_types: str, module: ModuleType) -> list[Any]:
    """The kernels that a module declares for some ops and for their gradients."""
    wanted = {name for op_type in op_types.split() for name in (op_type, f"{op_type}_grad")}
    return [s for s in kernel_specs(module) if s.place == "cuda" and s.library == "plain" and s.op_type in wanted]


for wrapped, sources in ((_as_it_is, AS_THEY_ARE), (_in_float32, IN_FLOAT32)):
    for op_types, module in sources.items():
        globals().update({f"half_{spec.op_type}": wrapped(spec) for spec in _first_order(op_types, module)})
