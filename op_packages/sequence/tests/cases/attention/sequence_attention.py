"""Cases of sequence_attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import LENGTHS
from ._formula import attention, gradient, normal


def case(
    name: str,
    queries: list[int],
    keys: list[int] | None = None,
    heads: tuple[int, int] = (2, 2),
    radius: int | None = None,
    dtype: str = "float64",
    above: list[int] | None = None,
    **attrs: Any,
) -> OpCase:
    """Sequences of these lengths; `above` are lengths of a level above them."""
    keys = queries if keys is None else keys
    upper = [] if above is None else [above]
    q = LoDTensor(normal(sum(queries), heads[0], 3, dtype=dtype), lod_from_lengths([*upper, queries]))
    k = LoDTensor(normal(sum(keys), heads[1], 3, dtype=dtype), lod_from_lengths([*upper, keys]))
    v = LoDTensor(normal(sum(keys), heads[1], 2, dtype=dtype), k.lod)
    inputs: dict[str, Any] = {"Q": q, "K": k, "V": v}
    if radius is not None:
        inputs["RelativeBias"] = normal(heads[0], 2 * radius + 1, dtype=dtype)
    offsets = q.lod[-1], k.lod[-1]
    out, lse = attention(q.array, k.array, v.array, *offsets, **attrs, bias=inputs.get("RelativeBias"))
    outputs = {"Out": LoDTensor(out, q.lod), "LogSumExp": LoDTensor(lse, q.lod)}
    grads = [slot for slot in inputs if inputs[slot].shape[0]] if dtype == "float64" else []
    return OpCase("sequence_attention", inputs, attrs, outputs, grads, name=name)


CROSS = [2, 0, 3, 0, 1], [3, 2, 0, 0, 4]

CASES = [case(name, lengths, causal=causal) for name, lengths in LENGTHS.items() for causal in (False, True)]
CASES += [
    case("float32", [4, 0, 3], dtype="float32"),
    case("cross", *CROSS),
    case("cross causal: the queries are the last", [2, 0, 1, 3], [3, 2, 4, 3], causal=True),
    case("more queries than keys: the first ones see none", [4, 2], [2, 2], causal=True),
    case("window", [5, 0, 2], window=[1, 2]),
    case("window, nothing behind", [5, 0, 2], window=[2, 0]),
    case("window, causal", [5, 1], [6, 1], window=[1, 3], causal=True),
    case("window that no key of some is in", [6, 2], [2, 2], window=[1, 1]),
    case("grouped heads", [3, 0, 2], heads=(4, 2)),
    case("one head of keys", *CROSS, heads=(3, 1), causal=True),
    case("bias", [4, 0, 2], radius=1),
    case("bias, further than any", [2, 3], radius=5),
    case("bias of no distance", [2, 3], radius=0),
    case("bias, cross, causal, grouped heads", [2, 1], [4, 1], heads=(4, 2), radius=2, causal=True),
    case("scale", [3, 1], scale=0.25),
    case("equal lengths that follow one another", [3, 3, 3]),
    case("two levels", [2, 0, 4, 1], above=[1, 0, 3]),
]


def _dropped(p: float, is_test: bool) -> OpCase:
    """All weights dropped, or none."""
    made = case(f"dropout {p}", [3, 0, 2])
    out = made.outputs["Out"]
    outputs = {"Out": out if is_test else LoDTensor(np.zeros_like(out.array), out.lod)}
    return OpCase(made.op, made.inputs, {"dropout_p": p, "is_test": is_test}, outputs, name=made.name)


CASES += [_dropped(1.0, False), _dropped(0.5, True)]


def _gradient(name: str, queries: list[int], keys: list[int]) -> OpCase:
    made = case(name, queries, keys)
    g = normal(*made.outputs["Out"].shape)
    found = gradient(*(made.inputs[s].array for s in "QKV"), g, made.inputs["Q"].lod[-1], made.inputs["K"].lod[-1])
    inputs = made.inputs | made.outputs | {"Out@GRAD": LoDTensor(g, made.inputs["Q"].lod)}
    outputs = {f"{s}@GRAD": LoDTensor(x, made.inputs[s].lod) for s, x in zip("QKV", found, strict=True)}
    return OpCase("sequence_attention_grad", inputs, {}, outputs, name=name)


CASES += [_gradient(f"gradient, {name}", lengths, lengths) for name, lengths in LENGTHS.items()]
CASES += [_gradient("gradient, cross", *CROSS)]
