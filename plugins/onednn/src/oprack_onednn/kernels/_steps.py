"""What follows the main step of a fused op, as post-ops of a primitive; and ops without this library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelRules
from oprack.packs.manager import default_manager
from oprack_nn.ops.post_ops import RESIDUAL, decode

from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.objects import Attributes

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import MemoryDesc

# op type -> oneDNN's (algorithm, alpha, beta) for the values of its attributes
_ALGORITHMS: dict[str, Callable[..., tuple[str, float, float]]] = {
    "relu": lambda: ("relu", 0.0, 0.0),
    "relu6": lambda threshold: ("clip_v2", 0.0, threshold),
    "leaky_relu": lambda alpha: ("relu", alpha, 0.0),
    "sigmoid": lambda: ("logistic", 0.0, 0.0),
    "tanh": lambda: ("tanh", 0.0, 0.0),
    "gelu": lambda approximate: ("gelu_tanh" if approximate else "gelu_erf", 0.0, 0.0),
    "swish": lambda beta: ("swish", beta, 0.0),
    "silu": lambda: ("swish", 1.0, 0.0),
    "hard_swish": lambda threshold, scale, offset: ("hardswish", 1 / scale, offset / scale),
    "hard_sigmoid": lambda slope, offset: ("hardsigmoid", slope, offset),
    "scale": lambda scale, bias, after: ("linear", scale, bias if after else scale * bias),
}


def algorithm(text: str) -> tuple[str, float, float]:
    """oneDNN's (algorithm, alpha, beta) of an activation's string."""
    op_type, numbers = decode(text)
    return _ALGORITHMS[op_type](*numbers)


KINDS = {
    name: i
    for i, name in enumerate(("relu", "clip_v2", "logistic", "swish", "hardsigmoid", "hardswish", "linear", "tanh"))
}
"""oneDNN's names of the functions of functions.h, and their numbers there."""


def functions(post_ops: Sequence[str], kinds: Mapping[str, int] = KINDS) -> list[int]:
    """The structs of functions.h, as numbers of 64 bits. Raises NotServedError for one that is not among `kinds`."""
    found: list[int] = []
    for name, *numbers in map(algorithm, post_ops):
        if name not in kinds:
            raise NotServedError(f"a step in C with {name}")
        found += kinds[name], *np.array(numbers, np.float64).view(np.int64).tolist()
    return found


# This library's kernel of the op is the caller: it would call itself.
_REFERENCE = KernelRules(excluded=["onednn"])


def run_reference(
    op_type: str,
    inputs: dict[str, Any],
    attrs: Mapping[str, Any],
    lods: Mapping[str, Sequence[list[list[int]]]] | None = None,
) -> tuple[Array, ...]:
    """Compute an op on arrays by slot without this library."""
    context = KernelContext(op_type, attrs, packs=default_manager(), rules=_REFERENCE)
    return context.run_op(op_type, inputs, attrs, lods)


def as_post_ops(
    post_ops: tuple[str, ...],
    residual: MemoryDesc | None = None,
    first: Sequence[tuple[Any, ...]] = (),
    scales: Sequence[tuple[int, int]] = (),
) -> tuple[Attributes, int | None]:
    """(attributes of the primitive, index of the residual among the post-ops or None).

    Args:
        first: Post-ops that come before these.
        scales: As `Attributes` takes them.
    """
    parts: list[tuple[Any, ...]] = [*first]
    at = None
    for text in post_ops:
        if text == RESIDUAL:
            at = len(parts)
            parts.append(("binary", _c.BINARY_ADD, residual))
        else:
            name, alpha, beta = algorithm(text)
            parts.append(("eltwise", _c.ELTWISE[name], alpha, beta))
    return Attributes(parts, scales), at
