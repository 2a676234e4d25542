"""Cases of flash_attn_unpadded, by the formula of attention; Paddle has no kernel of it for CPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from .._rows import LENGTHS
from ._formula import attention, gradient, normal


def padded(lse: np.ndarray, lengths: list[int], longest: int) -> np.ndarray:
    """[batch, heads, longest] of rows [N, heads]."""
    out, at = np.zeros((len(lengths), lse.shape[1], longest), np.float32), 0
    for i, n in enumerate(lengths):
        out[i, :, :n] = lse[at : at + n].T
        at += n
    return out


def case(
    name: str, queries: list[int], keys: list[int] | None = None, heads: tuple[int, int] = (2, 2), **attrs: Any
) -> OpCase:
    keys = queries if keys is None else keys
    q, k = normal(sum(queries), heads[0], 3), normal(sum(keys), heads[1], 3)
    v, longest = normal(sum(keys), heads[1], 2), (max(queries, default=0), max(keys, default=0) + 1)
    offsets = [np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys)]
    out, lse = attention(q, k, v, *(o.tolist() for o in offsets), scale=0.5, **attrs)
    inputs = {"q": q, "k": k, "v": v, "cu_seqlens_q": offsets[0], "cu_seqlens_k": offsets[1]}
    attrs |= {"scale": 0.5, "max_seqlen_q": longest[0], "max_seqlen_k": longest[1]}
    outputs = {"out": out, "softmax_lse": padded(lse, queries, longest[0]), "seed_offset": np.zeros(2, np.int64)}
    return OpCase("flash_attn_unpadded", inputs, attrs, outputs, ["q", "k", "v"] if sum(queries) else [], name=name)


def _softmax() -> OpCase:
    """Of two sequences, whose values are the rows of a unit matrix: what comes out are the weights."""
    made = case("softmax", [2, 3])
    v = np.zeros((5, 2, 4))
    v[:, :, :3] = np.concatenate([np.eye(3)[:2], np.eye(3)])[:, None]
    q, k = made.inputs["q"], made.inputs["k"]
    out, lse = attention(q, k, v, [0, 2, 5], [0, 2, 5], scale=0.5)
    weights = np.zeros((2, 2, 3, 4))
    weights[0, :, :2] = out[:2].transpose(1, 0, 2)
    weights[1] = out[2:].transpose(1, 0, 2)
    outputs = {"out": out, "softmax": weights, "softmax_lse": padded(lse, [2, 3], 3)}
    return OpCase("flash_attn_unpadded", made.inputs | {"v": v}, made.attrs | {"return_softmax": True}, outputs)


def _masked() -> OpCase:
    """A mask by which each query of the first sequence looks at the first key alone, as if there were one."""
    made = case("mask", [2, 3])
    mask = np.zeros((2, 1, 3, 4))
    mask[0, :, :, 1:] = -np.inf
    inputs = made.inputs | {"attn_mask": mask}
    first = np.broadcast_to(inputs["v"][:1], (2, 2, 2))
    return OpCase(
        made.op, inputs, made.attrs, {"out": np.concatenate([first, made.outputs["out"][2:]])}, ["v"], name=made.name
    )


def _hidden() -> OpCase:
    """A mask by which the second query of the first sequence sees nothing."""
    made = case("mask of a whole row", [2, 3])
    mask = np.zeros((2, 1, 3, 4))
    mask[0, :, 1] = -np.inf
    out, lse = made.outputs["out"].copy(), made.outputs["softmax_lse"].copy()
    out[1], lse[0, :, 1] = 0, np.inf
    return OpCase(
        made.op,
        made.inputs | {"attn_mask": mask},
        made.attrs,
        {"out": out, "softmax_lse": lse},
        ["q", "k", "v"],
        name=made.name,
        loss=["out"],
    )


def _dropped() -> OpCase:
    made = case("dropout of all weights", [2, 3])
    inputs = made.inputs | {"fixed_seed_offset": np.array([7, 3])}
    outputs = {"out": np.zeros_like(made.outputs["out"]), "seed_offset": np.array([7, 3])}
    return OpCase(made.op, inputs, made.attrs | {"dropout": 1.0}, outputs, name=made.name)


def _gradient() -> OpCase:
    made = case("gradient", [2, 0, 3], [1, 2, 3])
    q, k, v = (made.inputs[s] for s in "qkv")
    g, offsets = normal(*made.outputs["out"].shape), [made.inputs[f"cu_seqlens_{s}"].tolist() for s in "qk"]
    scaled = q * (0.5 * 3**0.5)  # the formula divides by the root of the width
    found = gradient(scaled, k, v, g, *offsets)
    outputs = {"q@GRAD": found[0] * (0.5 * 3**0.5), "k@GRAD": found[1], "v@GRAD": found[2]}
    inputs = made.inputs | made.outputs | {"out@GRAD": g}
    return OpCase("flash_attn_unpadded_grad", inputs, made.attrs, outputs)


CASES = [case(name, lengths, causal=causal) for name, lengths in LENGTHS.items() for causal in (False, True)]
CASES += [
    case("cross", [2, 0, 3, 0, 1], [3, 2, 0, 0, 4]),
    case("cross causal: the queries are the last", [2, 0, 1, 3], [3, 2, 4, 3], causal=True),
    case("grouped heads", [3, 0, 2], heads=(4, 2)),
    _softmax(),
    _masked(),
    _hidden(),
    _dropped(),
    _gradient(),
]
