"""Activations and their gradients in one pass; the same formulas in several passes serve where this can't."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from oprack.kernel import Array, ArrayModule
from oprack.types import FLOATS, HALF_FLOATS

from oprack_cuda.kernels._launch import F64, I64, cuda_kernel, dense, launch

REALS = FLOATS | HALF_FLOATS

# op -> attributes in the order of the source's a, b, c
_ATTRS: dict[str, tuple[str, ...]] = {
    "sigmoid": (),
    "silu": (),
    "swish": ("beta",),
    "mish": ("threshold",),
    "softplus": ("beta", "threshold"),
    "leaky_relu": ("alpha",),
    "elu": ("alpha",),
    "hard_sigmoid": ("slope", "offset"),
    "hard_swish": ("threshold", "scale", "offset"),
}
# gradient op -> (slot that its formula reads, attributes)
_GRADS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sigmoid_grad": ("Out", ()),
    "tanh_grad": ("Out", ()),
    "silu_grad": ("X", ()),
    "swish_grad": ("X", ("beta",)),
    "softplus_grad": ("X", ("beta", "threshold")),
    "leaky_relu_grad": ("X", ("alpha",)),
    "hard_swish_grad": ("X", ("threshold", "scale", "offset")),
}


def _run(xp: ArrayModule, name: str, operands: Sequence[Any], numbers: Sequence[float]) -> Array:
    operands = [dense(xp, x) for x in operands]
    out = xp.empty(operands[0].shape, operands[0].dtype)
    a, b, c = [F64(x) for x in (*numbers, 0, 0, 0)[:3]]
    launch(xp, "pointwise.cu", name, out.dtype, out.size, *operands, out, I64(out.size), a, b, c)
    return out


def _kernel(op_type: str, slots: tuple[str, ...], attrs: tuple[str, ...]) -> Callable[..., Any]:
    def activation(*operands: Array, xp: ArrayModule, **named: float) -> Array:
        return _run(xp, op_type, operands, [named[a] for a in attrs])

    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(s, kinds[0]) for s in slots]
    parameters += [inspect.Parameter(a, kinds[1]) for a in (*attrs, "xp")]
    activation.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    activation.__name__ = activation.__qualname__ = op_type
    return cuda_kernel(op_type, REALS)(activation)


globals().update({op: _kernel(op, ("X",), attrs) for op, attrs in _ATTRS.items()})
globals().update({op: _kernel(op, (slot, "Out_grad"), attrs) for op, (slot, attrs) in _GRADS.items()})


def _gelu(approximate: bool) -> str:
    return "gelu_tanh" if approximate else "gelu_erf"


@cuda_kernel("gelu", REALS)
def gelu(X: Array, *, approximate: bool, xp: ArrayModule) -> Array:
    return _run(xp, _gelu(approximate), (X,), ())


@cuda_kernel("gelu_grad", REALS)
def gelu_grad(X: Array, Out_grad: Array, *, approximate: bool, xp: ArrayModule) -> Array:
    return _run(xp, _gelu(approximate) + "_grad", (X, Out_grad), ())
