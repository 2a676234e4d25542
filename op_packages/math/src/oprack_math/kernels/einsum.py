"""Kernels of einsum: products of two operands at a time, each as one batched matrix product."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from oprack.errors import PreconditionNotMetError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import INTEGERS

from oprack_math.kernels._numeric import accumulator, conjugate
from oprack_math.kernels._sets import BOTH, FLOATING
from oprack_math.kernels.matmul import matrix_product as matmul
from oprack_math.ops.matmul import parse


def _diagonal(x: Array, labels: str, xp: ArrayModule) -> tuple[Array, str]:
    """Take the diagonal of dims with one letter: each letter once, in order of appearance."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            first, second = labels.index(c), labels.rindex(c)
            x = xp.moveaxis(xp.diagonal(x, axis1=first, axis2=second), -1, first)
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _keep(x: Array, labels: str, wanted: Collection[str] | str) -> tuple[Array, str]:
    """Sum over the letters that are not wanted."""
    gone = tuple(i for i, c in enumerate(labels) if c not in wanted)
    if gone:
        x = x.sum(axis=gone, dtype=accumulator(x.dtype)).astype(x.dtype, copy=False)
    return x, "".join(c for c in labels if c in wanted)


def _flat(t: Array, labels: str, batch: Sequence[str], parts: Sequence[Sequence[str]]) -> Array:
    """Dims of t in the order batch, parts, with each part as one dim."""
    size = dict(zip(labels, t.shape, strict=True))
    t = t.transpose([labels.index(c) for part in (batch, *parts) for c in part])
    return t.reshape([size[c] for c in batch] + [math.prod(size[c] for c in part) for part in parts])


def _shared(x: Array, a: str, y: Array, b: str, wanted: Collection[str]) -> tuple[list[str], list[str]]:
    """Letters of both operands: (those of the batch, those that the product sums over).

    A dim of 1 broadcasts: a letter of different sizes can't be summed by a matrix product, so it joins the batch.
    """
    both = [c for c in a if c in b]
    inner = [c for c in both if c not in wanted and x.shape[a.index(c)] == y.shape[b.index(c)]]
    return [c for c in both if c not in inner], inner


def _pair(x: Array, a: str, y: Array, b: str, wanted: Collection[str], xp: ArrayModule) -> tuple[Array, str]:
    """x with letters a times y with letters b, summed over what nobody wants any more."""
    x, a = _keep(x, a, set(b) | set(wanted))
    y, b = _keep(y, b, set(a) | set(wanted))
    batch, inner = _shared(x, a, y, b, wanted)
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    out = matmul(_flat(x, a, batch, (rows, inner)), _flat(y, b, batch, (inner, columns)), xp)
    size = dict(zip(a + b, x.shape + y.shape, strict=True))
    shape = [*out.shape[: len(batch)], *(size[c] for c in (*rows, *columns))]
    return _keep(out.reshape(shape), "".join(batch + rows + columns), wanted)


def contract(inputs: Sequence[str], output: str, operands: Sequence[Array], xp: ArrayModule) -> tuple[Array, str]:
    """Sum of products; letters of `output` that no operand has are left out. Returns the array and its letters."""
    arrays = [_diagonal(x, labels, xp) for x, labels in zip(operands, inputs, strict=True)]
    x, labels = arrays[0]
    for i, (y, other) in enumerate(arrays[1:], start=1):
        later = set(output).union(*(set(b) for _, b in arrays[i + 1 :]))
        x, labels = _pair(x, labels, y, other, later, xp)
    x, labels = _keep(x, labels, output)
    order = [c for c in output if c in labels]
    return x.transpose([labels.index(c) for c in order]), "".join(order)


@kernel("einsum", place=BOTH, dtypes=FLOATING | INTEGERS)
def einsum(
    Operands: list[Array], *, equation: str, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | list[Array]]:
    """The sum of products, and copies of the operands where a gradient will follow."""
    parsed = parse(equation, [x.ndim for x in Operands])
    out, _ = contract(parsed.inputs, parsed.output, Operands, xp)
    copies = [x.copy() for x in Operands[: ctx.output_count("InnerCache")]]
    return {"Out": xp.array(out, order="C"), "InnerCache": copies}


def _spread(gradient: Array, labels: str, own: str, shape: tuple[int, ...], xp: ArrayModule) -> Array:
    """`gradient` over `labels` as the gradient of an operand with letters `own`: broadcast, and on its diagonals."""
    once = "".join(dict.fromkeys(own))
    sizes = {c: shape[own.index(c)] for c in once}
    gradient = gradient.sum(
        axis=tuple(i for i, c in enumerate(labels) if sizes[c] == 1 and gradient.shape[i] != 1),
        keepdims=True,
        dtype=gradient.dtype,
    )
    full = gradient.reshape([gradient.shape[labels.index(c)] if c in labels else 1 for c in once])
    result = xp.zeros(shape, gradient.dtype)
    if once == own:
        result[...] = full
        return result
    # each letter of `once` walks along every dim that has it
    index = tuple(xp.arange(sizes[c]).reshape([-1 if c == d else 1 for d in once]) for c in own)
    result[index] = full
    return result


@kernel("einsum_grad", place=BOTH, dtypes=FLOATING | INTEGERS)
def einsum_grad(
    x_shape: list[Array],
    InnerCache: list[Array],
    Out_grad: Array,
    *,
    equation: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> list[Array | None]:
    """Out@GRAD times the other operands, for every operand."""
    if len(InnerCache) < equation.count(",") + 1:
        raise PreconditionNotMetError(
            f"op einsum_grad: InnerCache holds {len(InnerCache)} tensors for equation {equation!r}; expected one per "
            "operand, so give the forward op that many variables in InnerCache"
        )
    parsed = parse(equation, [x.ndim for x in InnerCache])
    gradients: list[Array | None] = []
    for i, (x, own) in enumerate(zip(InnerCache, parsed.inputs, strict=True)):
        if not ctx.wants("Operands@GRAD", i):
            gradients.append(None)
            continue
        others = [k for k in range(len(InnerCache)) if k != i]
        labels = [parsed.output, *(parsed.inputs[k] for k in others)]
        factors = [Out_grad, *(conjugate(InnerCache[k], xp) for k in others)]
        once = "".join(dict.fromkeys(own))
        gradient, kept = contract(labels, once, factors, xp)
        gradients.append(_spread(gradient, kept, own, x.shape, xp))
    return gradients
