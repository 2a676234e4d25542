"""`oprack_jax.ops.<op>`: every op of every installed pack as a function of jax's arrays, as in oprack.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from oprack.bridge import BridgedFunctions, BridgedOp, bridged_op, bridged_ops
from oprack.types import dtype_name

from oprack_jax.calls import apply
from oprack_jax.sequences import Sequences

_functions = BridgedFunctions(__name__, lambda name: _function(bridged_op(name)))


def __getattr__(name: str) -> Callable[..., Any]:
    return _functions(name)


def __dir__() -> list[str]:
    return list(bridged_ops())


def _function(op: BridgedOp) -> Callable[..., Any]:
    names = [p.name for p in op.signature.parameters if p.slot is not None]
    signature = op.signature.inspected()

    def function(*args: Any, **attrs: Any) -> Any:
        asked = attrs.pop("num_outputs", None)
        given = dict(signature.bind(*args, **attrs).arguments, num_outputs=asked)
        values = {n: _arrays(given.pop(n)) for n in names if n in given}
        plain, counts = op.plain({n: _dtype(n, v) for n, v in given.items()})
        expr, flat = op.expression(values, plain, counts)
        return op.shown(op.formed(expr, apply(expr, flat)))

    op.signature.describe(function, __name__)
    return function


def _arrays(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_arrays(v) for v in value]
    if isinstance(value, Sequences) and not hasattr(value.values, "dtype"):
        return Sequences(jnp.asarray(value.values), value.offsets)
    return value if value is None or hasattr(value, "dtype") else jnp.asarray(value)


def _dtype(name: str, value: Any) -> Any:
    """jnp.float32 and the like as the name that attributes take."""
    return dtype_name(np.dtype(value)) if name.endswith("dtype") and isinstance(value, type | np.dtype) else value
