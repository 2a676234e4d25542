"""What follows the main step of a fused op: with the kernels of the ops that it stands for, or as post-ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array, KernelContext, KernelRules
from oprack.packs.manager import default_manager

from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.objects import Attributes
from oprack_onednn.ops.post_ops import RESIDUAL, algorithm, attributes

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import MemoryDesc

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


def after(
    y: Array, axis: int, bias: Array | None, residual: Array | None, post_ops: Sequence[str], ctx: KernelContext
) -> Array:
    """What follows the main step: the bias along an axis, and the post-ops. ctx: the context of the fused op."""
    if bias is not None:
        y = ctx.run_op("elementwise_add", {"X": y, "Y": bias}, {"axis": axis})
    for text in post_ops:
        if text == RESIDUAL:
            y = ctx.run_op("elementwise_add", {"X": y, "Y": residual}, {"axis": -1})
        else:
            op_type, attrs = attributes(text)
            y = ctx.run_op(op_type, {"X": y}, attrs)
    return y


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
