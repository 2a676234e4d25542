"""Ops that compute each row of a padded batch by itself, and what they are called on rows without padding.

A rule is asked about an op of which some operands are [B, S, ...] (lead 2), or [B S n, ...] or [B, ...] (lead 1), and
all others are the same for each row. It returns the attributes that differ when these dims are one and count rows
without padding, or None when rows meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from oprack.ir import OpNode, VarNode

from oprack_sequence.passes._sizes import BINARY, PRODUCTS, RESHAPES, Dims, Sizes, same

UNARY = frozenset(
    "abs assign cast ceil clip cos elu erf exp fill_any_like fill_zeros_like floor gelu hard_shrink hard_sigmoid "
    "hard_swish leaky_relu log log1p logical_not mish pow reciprocal relu relu6 round rsqrt scale selu sigmoid sign "
    "silu sin softplus softshrink softsign sqrt square swish tanh tanh_shrink".split()
)
REDUCTIONS = frozenset(f"reduce_{name}" for name in ("max", "mean", "min", "prod", "sum"))


class Rows(NamedTuple):
    """An op as the rules see it.

    Attributes:
        op: The op.
        sizes: Dims of variables.
        lead_of: How many dims in front of a variable count rows, 0 where it has no values for each row.
        lead: That of the operands which have values for each row.
    """

    op: OpNode
    sizes: Sizes
    lead_of: Callable[[VarNode | None], int]
    lead: int

    @classmethod
    def of(cls, op: OpNode, sizes: Sizes, lead_of: Callable[[VarNode | None], int]) -> Rows | None:
        """None where no operand counts rows, or some count them otherwise than others."""
        leads = {lead_of(n) for n in op.reads()} - {0}
        return cls(op, sizes, lead_of, leads.pop()) if len(leads) == 1 else None

    def is_rows(self, node: VarNode | None) -> bool:
        return self.lead_of(node) == self.lead

    def dims(self, slot: str) -> Dims | None:
        return self.sizes.dims(self.op.input(slot) or self.op.output(slot))

    def only(self, *slots: str) -> bool:
        """Whether it has these inputs and no others, of which the first has a value for each row."""
        given = [slot for slot, nodes in self.op.inputs.items() if nodes]
        return set(given) <= set(slots) and self.is_rows(self.op.input(slots[0]))

    def inner(self, axis: int, rank: int) -> int | None:
        """A dim behind those that count rows, as it is numbered when they are one; None for one of them."""
        axis = axis + rank if axis < 0 else axis
        return axis - self.lead + 1 if axis >= self.lead else None

    def inner_axes(self, axes: Sequence[int], rank: int) -> list[int] | None:
        found = [self.inner(axis, rank) for axis in axes]
        return None if None in found else cast("list[int]", found)


Rule: TypeAlias = "Callable[[Rows], dict[str, Any] | None]"


def _unary(rows: Rows) -> dict[str, Any] | None:
    return {} if rows.only("X") else None


def _dropout(rows: Rows) -> dict[str, Any] | None:
    return {} if rows.only("X") and rows.op.attr("is_test", False) else None


def _binary(rows: Rows) -> dict[str, Any] | None:
    x, y, axis = rows.dims("X"), rows.dims("Y"), rows.op.attr("axis", -1)
    if x is None or y is None:
        return None
    of_x, of_y = rows.is_rows(rows.op.input("X")), rows.is_rows(rows.op.input("Y"))
    if of_x and of_y:
        return {"axis": -1} if len(x) == len(y) else None
    if not of_x:
        return {} if len(x) <= len(y) - rows.lead and axis == -1 else None
    if axis == -1 or not y:
        return {} if len(y) <= len(x) - rows.lead else None
    inner = rows.inner(axis, len(x))
    return None if inner is None or axis + len(y) > len(x) else {"axis": inner}


def _product(rows: Rows) -> dict[str, Any] | None:
    x, y, op = rows.dims("X"), rows.dims("Y"), rows.op
    turned = op.attr("transpose_X", op.attr("trans_x", False))
    plain = op.attr("head_number", 1) == 1 and rows.only("X", "Y")
    if x is None or y is None or not plain:
        return None
    if rows.is_rows(op.input("Y")):  # matrices of each row
        return {} if len(x) == len(y) == rows.lead + 2 else None
    return {} if not turned and len(y) == 2 and len(x) > rows.lead else None


def _mul(rows: Rows) -> dict[str, Any] | None:
    columns = rows.op.attr("x_num_col_dims", 1)
    fits = rows.only("X", "Y") and not rows.is_rows(rows.op.input("Y")) and columns >= rows.lead
    return {"x_num_col_dims": columns - rows.lead + 1} if fits else None


def _layer_norm(rows: Rows) -> dict[str, Any] | None:
    begin = rows.op.attr("begin_norm_axis", 1)
    fits = rows.only("X", "Scale", "Bias") and begin >= rows.lead
    return {"begin_norm_axis": begin - rows.lead + 1} if fits else None


def _along(default: int) -> Rule:
    """Of an op along one dim."""

    def rule(rows: Rows) -> dict[str, Any] | None:
        x, op = rows.dims("X"), rows.op
        if x is None or not rows.only("X") or op.attr("flatten", False):
            return None
        axis = rows.inner(op.attr("axis", default), len(x))
        return None if axis is None else {"axis": axis}

    return rule


def _lookup(rows: Rows) -> dict[str, Any] | None:
    return {} if rows.only("Ids", "W") and not rows.is_rows(rows.op.input("W")) else None


def _reshape(rows: Rows) -> dict[str, Any] | None:
    """One that leaves dims of rows in front; those behind have to be numbers."""
    x, out = rows.dims("X"), rows.sizes.dims(rows.op.output("Out"))
    lead = rows.lead_of(rows.op.output("Out"))
    if x is None or not out or not lead or not rows.is_rows(rows.op.input("X")):
        return None
    inner = [d for d in out[lead:] if isinstance(d, int) and d > 0]
    kept = lead == rows.lead and same(x[0], out[0])
    return {"shape": [0 if kept else -1, *inner]} if len(inner) == len(out) - lead else None


def _transpose(rows: Rows) -> dict[str, Any] | None:
    axes, fixed = list(rows.op.attr("axis", ())), list(range(rows.lead))
    if not rows.only("X") or axes[: rows.lead] != fixed:
        return None
    return {"axis": [0, *(a - rows.lead + 1 for a in axes[rows.lead :])]}


def _axes(of_output: bool) -> Rule:
    """Of an op that adds or removes dims of size 1."""

    def rule(rows: Rows) -> dict[str, Any] | None:
        dims, axes = rows.dims("Out" if of_output else "X"), list(rows.op.attr("axes", ()))
        if dims is None or not axes or not rows.only("X") or (len(axes) > 1 and min(axes) < 0):
            return None
        found = rows.inner_axes(axes, len(dims))
        return None if found is None else {"axes": found}

    return rule


def _slice(rows: Rows) -> dict[str, Any] | None:
    dims, op = rows.dims("Input"), rows.op
    if dims is None or not rows.only("Input"):
        return None
    axes, gone = (rows.inner_axes(op.attr(name, ()), len(dims)) for name in ("axes", "decrease_axis"))
    return None if axes is None or gone is None else {"axes": axes, "decrease_axis": gone}


def _concat(rows: Rows) -> dict[str, Any] | None:
    x, nodes = rows.dims("X"), rows.op.inputs.get("X", [])
    if x is None or not rows.only("X") or not all(map(rows.is_rows, nodes)):
        return None
    axis = rows.inner(rows.op.attr("axis", 0), len(x) + (rows.op.type == "stack"))
    return None if axis is None else {"axis": axis}


def _reduce(rows: Rows) -> dict[str, Any] | None:
    x, op = rows.dims("X"), rows.op
    if x is None or not rows.only("X") or op.attr("reduce_all", False):
        return None
    found = rows.inner_axes(op.attr("dim", (0,)), len(x))
    return None if not found else {"dim": found}


RULES: dict[str, Rule] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(RESHAPES, _reshape),
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(("softmax", "log_softmax", "arg_max", "arg_min"), _along(-1)),
    **dict.fromkeys(("lookup_table", "lookup_table_v2"), _lookup),
    **dict.fromkeys(("transpose", "transpose2"), _transpose),
    **dict.fromkeys(("unsqueeze", "unsqueeze2"), _axes(of_output=True)),
    **dict.fromkeys(("squeeze", "squeeze2"), _axes(of_output=False)),
    **dict.fromkeys(("concat", "stack"), _concat),
    "dropout": _dropout,
    "layer_norm": _layer_norm,
    "mul": _mul,
    "slice": _slice,
    "split": _along(0),
}
"""By op type."""


def on_rows(op: OpNode, sizes: Sizes, lead_of: Callable[[VarNode | None], int]) -> dict[str, Any] | None:
    """The attributes that differ when an op runs on rows without padding; None when it is not one of each row alone.

    Args:
        op: The op.
        sizes: Dims of variables.
        lead_of: How many dims in front of a variable count rows, 0 where it has no values for each row.
    """
    rule = RULES.get(op.type)
    if rule is None or op.opaque or op.malformed or op.hidden_writes or op.hidden_reads or op.runs_itself:
        return None
    rows = Rows.of(op, sizes, lead_of)
    changed = None if rows is None else rule(rows)
    return changed if changed is not None and _main_output_alone(op) else None


def _main_output_alone(op: OpNode) -> bool:
    """Whether nobody reads what an op gives besides its first output: means and variances, shapes, masks."""
    main = main_slot(op)
    return all(not n.consumers for slot, nodes in op.outputs.items() if slot != main for n in nodes)


def main_slot(op: OpNode) -> str:
    """The output slot whose variables have a value for each row."""
    return "Y" if op.type in ("layer_norm", "stack") else "Out"
