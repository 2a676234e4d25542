"""softmax(alpha q k' + mask) v with the reshapes and transposes around it becomes one op on [B, T, heads * D]."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from oprack.ir import Graph, Match, NewVar, OpNode, PatternBuilder, fusion
from oprack.ir.match import Value
from oprack.ir.pattern import OpPattern
from oprack_nn.passes.post_ops import plain_product

PRODUCTS = ("matmul", "matmul_v2")
RESHAPES = ("reshape", "reshape2")
TRANSPOSES = ("transpose", "transpose2")
LINEAR = ("mul", *PRODUCTS)


# What ops do to shapes ------------------------------------------------------------------------------------------------
def _keeps(sizes: Sequence[int], dims: tuple[int, ...]) -> bool:
    """Whether a reshape to `sizes` leaves these dims as they are; a -1 among them is right when all else is."""
    return len(sizes) == len(dims) and all(s in (0, -1) or s == d for s, d in zip(sizes, dims, strict=True))


def _parts(op: OpNode) -> list[int] | None:
    """What a reshape makes of the last dim of [B, T, n], as [heads, D]; None when it does anything else."""
    x, sizes = op.input("X"), list(op.attr("shape", ()))
    if x is None or x.shape is None or x.desc is None or len(x.shape) != 3 or len(sizes) < 4 or x.desc.lod_level:
        return None
    parts = sizes[2:]
    if min(parts) < 1 or sizes.count(-1) > 1 or not _keeps(sizes[:2], x.shape[:2]):
        return None
    return parts if math.prod(parts) == x.shape[2] else None


def _parts_of(m: Match, split: OpPattern) -> list[int]:
    parts = _parts(m.op_of(split))
    assert parts is not None  # the pattern's condition
    return parts


def _splits(count: int) -> Callable[..., Any]:
    def where(op: OpNode) -> bool:
        parts = _parts(op)
        return parts is not None and len(parts) == count

    return where


def _joins(op: OpNode) -> bool:
    """Whether a reshape of [B, T, heads, D] puts the heads side by side."""
    x, sizes = op.input("X"), list(op.attr("shape", ()))
    if x is None or x.shape is None or len(x.shape) != 4 or len(sizes) != 3 or min(x.shape[2:]) < 1:
        return False
    if sizes.count(-1) > 1 or not _keeps(sizes[:2], x.shape[:2]):
        return False
    return sizes[2] in (-1, math.prod(x.shape[2:]))


def _swaps(op: OpNode) -> bool:
    return bool(op.attr("transpose_Y", op.attr("trans_y", False)))


def _product(swapped: bool) -> Callable[..., Any]:
    """Condition on a product: Y is given with its last dims swapped, or as it is."""

    def where(op: OpNode) -> bool:
        flags = ("transpose_X", "trans_x")
        return not any(op.attr(f, False) for f in flags) and _swaps(op) == swapped and op.attr("head_number", 1) == 1

    return where


def _over_the_last(op: OpNode) -> bool:
    return op.attr("axis", -1) in (-1, 3)


def _factor(op: OpNode) -> bool:
    return bool(op.attr("bias", 0.0) == 0)


# The middle: products and softmax -------------------------------------------------------------------------------------
class _Middle:
    """Patterns from q, k [B, heads, T, D] to the context [B, T, heads * D]; keys are [.., M, D], flipped [.., D, M]."""

    def __init__(self, p: PatternBuilder, query: Any, keys: Any, flipped: Any, values: Any) -> None:
        self.before = p.op("scale", X=query, where=_factor)
        first = p.either(self.before, query)
        products = [p.op(PRODUCTS, X=first, Y=keys, where=_product(True))]
        if flipped is not None:
            products.append(p.op(PRODUCTS, X=first, Y=flipped, where=_product(False)))
        self.products = products
        scores = p.either(*products)
        self.after = p.op("scale", X=scores, where=_factor)
        self.divided = p.op("elementwise_div", X=scores, Y=p.param("divisor"))
        scores = p.either(self.after, self.divided, scores)
        self.mask = p.op("elementwise_add", X=scores, Y="mask", commutative=True)
        weights = p.op("softmax", X=p.either(self.mask, scores), where=_over_the_last)
        self.context = p.op(PRODUCTS, X=weights, Y=values, where=_product(False))
        moved = p.op(TRANSPOSES, X=self.context, attrs={"axis": [0, 2, 1, 3]})
        self.root = p.op(RESHAPES, X=moved, where=_joins)

    def alpha(self, m: Match) -> float | None:
        """The factor of the scores; None when it is no single number."""
        # The factor of the second product would have to follow the softmax.
        if m.op_of(self.context).attr("alpha", 1.0) != 1:
            return None
        alpha: float = next(m.op_of(op) for op in self.products if m.has(op)).attr("alpha", 1.0)
        for op in (self.before, self.after):
            if m.has(op):
                alpha *= m.attr(op, "scale")
        if m.has(self.divided):
            divisor = m.value("divisor")
            if divisor.size != 1 or not divisor.item():
                return None
            alpha /= divisor.item()
        return alpha

    def added(self, m: Match) -> dict[str, Any] | None:
        """{"Mask": what is added to the scores} or {}; None when that is no mask."""
        if not m.has(self.mask):
            return {}
        mask, scores = m["mask"], m.op_of(self.mask).outputs["Out"][0].shape
        if mask.shape is None or scores is None or len(scores) != 4 or len(mask.shape) > 4 or mask.dtype != "float32":
            return None
        if m.attr(self.mask, "axis") != -1 and len(mask.shape) != 4:
            return None
        dims = zip(mask.shape, scores[4 - len(mask.shape) :], strict=True)
        # A mask that is larger than the scores would broadcast them.
        return {"Mask": mask} if all(d == 1 or d == s for d, s in dims) else None

    def attention(self, m: Match, heads: int, inputs: Callable[[], Iterable[Value]]) -> NewVar | None:
        """The op that takes the place of all this, given its queries, keys and values; None when there is none."""
        alpha, added = self.alpha(m), self.added(m)
        if alpha is None or added is None:
            return None
        slots: dict[str, Any] = dict(zip("QKV", inputs(), strict=True))
        return m.op("onednn_attention", attrs={"heads": heads, "alpha": alpha}, **slots, **added)


@fusion("onednn_attention_apart")
def attention_apart(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """Queries, keys and values are three variables."""
    splits = {name: p.op(RESHAPES, X=name, where=_splits(2)) for name in "qkv"}
    query, keys, values = (p.op(TRANSPOSES, X=s, attrs={"axis": [0, 2, 1, 3]}) for s in splits.values())
    flipped = p.op(TRANSPOSES, X=splits["k"], attrs={"axis": [0, 2, 3, 1]})
    middle = _Middle(p, query, keys, flipped, values)

    def build(m: Match) -> NewVar | None:
        heads = {_parts_of(m, s)[0] for s in splits.values()}
        if len(heads) > 1:
            return None
        return middle.attention(m, heads.pop(), lambda: [m[name] for name in "qkv"])

    return middle.root, build


def _takes(part: int) -> Callable[..., Any]:
    """Condition on a slice: it takes one part along the first dim, and drops that dim."""
    wanted = {"axes": [0], "starts": [part], "ends": [part + 1], "decrease_axis": [0]}
    return lambda op: all(list(op.attr(name, ())) == value for name, value in wanted.items())


def _of_three(op: OpNode) -> bool:
    """Whether an op reads [B, T, 3, heads, D]."""
    x = op.inputs["X"][0].shape
    return x is not None and len(x) == 5 and x[2] == 3


def _together(p: PatternBuilder, source: Any) -> tuple[_Middle, OpPattern]:
    """(pattern, what splits it) of queries, keys and values that are computed as one variable [B, T, 3 * heads * D]."""
    split = p.op(RESHAPES, X=source, where=_splits(3))
    moved = p.op(TRANSPOSES, X=split, attrs={"axis": [2, 0, 3, 1, 4]}, where=_of_three)
    query, keys, values = (p.op("slice", Input=moved, where=_takes(part)) for part in range(3))
    return _Middle(p, query, keys, None, values), split


@fusion("onednn_attention_split_weights")
def attention_split_weights(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """One product makes queries, keys and values: three products with a third of the weights, so that nothing moves."""
    product = p.op(LINEAR, X="x", Y=p.param("w"), where=plain_product)
    biased = p.op("elementwise_add", X=product, Y=p.param("b"), commutative=True)
    middle, split = _together(p, p.either(biased, product))

    def build(m: Match) -> NewVar | None:
        w, b = m.value("w"), m.value("b") if m.has(biased) else None
        width = w.shape[1]
        if b is not None and (
            b.size != width or b.shape[-1] != width or m.attr(biased, "axis") not in (-1, 3 - b.ndim)
        ):
            return None

        def inputs() -> Iterator[NewVar]:
            for part in range(3):
                columns = slice(part * width // 3, (part + 1) * width // 3)
                attrs = m.attrs(product)
                out = m.op(m.op_of(product).type, X=m["x"], Y=m.new_param(w[:, columns], like="w"), attrs=attrs)
                if b is not None:
                    bias = m.new_param(b.reshape(-1)[columns], like="b")
                    out = m.op("elementwise_add", X=out, Y=bias, attrs={"axis": -1})
                yield out

        return middle.attention(m, _parts_of(m, split)[1], inputs)

    return middle.root, build


@fusion("onednn_attention_together")
def attention_together(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """Queries, keys and values are thirds of one variable."""
    middle, split = _together(p, "qkv")

    def build(m: Match) -> NewVar | None:
        shape = m["qkv"].shape
        assert shape is not None  # what is split has a known one
        width = shape[2] // 3

        def inputs() -> Iterator[NewVar]:
            for part in range(3):
                attrs = {"axes": [2], "starts": [part * width], "ends": [(part + 1) * width]}
                yield m.op("slice", Input=m["qkv"], attrs=attrs)

        return middle.attention(m, _parts_of(m, split)[1], inputs)

    return middle.root, build


# Weights are split before one variable is cut into thirds, since split weights need no copies.
_ATTENTION = attention_apart + attention_split_weights + attention_together


def fuse_attention(graph: Graph) -> int:
    """Attention as programs write it."""
    return _ATTENTION(graph)
