"""Rules that definitions of ops share: element-wise ops, reductions, products, and others by names of dims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oprack.op.sbp.signature import (
    Letters,
    SbpContext,
    Signature,
    broadcast,
    broadcast_names,
    letters,
    merged_names,
    partial_sum,
    split,
)

Rule = Callable[[SbpContext], list[Signature]]


def _names(given: Letters) -> list[str | None]:
    names = given.split() if isinstance(given, str) else list(given)
    return [None if n == "." else n for n in names]


def factors(
    inputs: Mapping[str, Letters],
    outputs: Mapping[str, Letters],
    linear: Sequence[Sequence[str]] = (),
    mean: Iterable[str] = (),
    no: Iterable[str] = (),
    sizes: Mapping[str, str] | None = None,
    shared: Mapping[str, int] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> list[Signature]:
    """The signatures that follow from names of dims, as in an einsum.

    Each name that an input has may be split: tensors that have it are split there, inputs that lack it are whole, and
    outputs that lack it are partial sums.

    Args:
        inputs: Names of the dims of each input slot.
        outputs: Names of the dims of each output slot.
        linear: Groups of inputs in which the outputs are linear: where all of a group are partial sums and the others
            whole, the outputs are partial sums.
        mean: Names over which the op takes means, not sums.
        no: Names that can't be split.
        sizes: See Signature.
        shared: Names that only so many ranks can split as divide a number.
        attrs: See Signature.

    Returns:
        The signatures.
    """
    ins = {slot: _names(given) for slot, given in inputs.items()}
    outs = {slot: _names(given) for slot, given in outputs.items()}
    refused, means, found = set(no), set(mean), []
    for name in dict.fromkeys(n for names in ins.values() for n in names if n is not None):
        if name in refused or any(names.count(name) > 1 for names in (*ins.values(), *outs.values())):
            continue
        where = {slot: names.index(name) for slot, names in ins.items() if name in names}
        found.append(
            Signature(
                {slot: split(where[slot]) if slot in where else broadcast for slot in ins},
                {slot: split(names.index(name)) if name in names else partial_sum for slot, names in outs.items()},
                share=next(iter(where.items())) if name in means else None,
                sizes=sizes or {},
                attrs=attrs or {},
                shared=(shared or {}).get(name, 0),
            )
        )
    for group in linear:
        if all(slot in ins for slot in group):
            found.append(
                Signature(
                    {slot: partial_sum if slot in group else broadcast for slot in ins},
                    dict.fromkeys(outs, partial_sum),
                    attrs=attrs or {},
                )
            )
    return found


def unary(ctx: SbpContext) -> list[Signature]:
    """The rule of element-wise functions X -> Out: any dim may be split."""
    return elementwise(("X",), ("Out",))(ctx)


def linear_unary(ctx: SbpContext) -> list[Signature]:
    """The rule of element-wise linear functions X -> Out, of partial sums as well."""
    return elementwise(("X",), ("Out",), linear=(("X",),))(ctx)


def elementwise(
    inputs: Sequence[str], outputs: Sequence[str], linear: Sequence[Sequence[str]] = (), random: bool = False
) -> Rule:
    """The rule of ops whose tensors all have one shape, element by element; those of one element stay whole.

    Args:
        inputs: Input slots.
        outputs: Output slots.
        linear: See factors.
        random: Whether the op draws random numbers.

    Returns:
        The rule.
    """

    def rule(ctx: SbpContext) -> list[Signature]:
        shape = ctx.dim(inputs[0])
        names = letters(len(shape))
        same = [s for s in inputs if ctx.has(s) and ctx.dim(s) == shape]
        others = {s: [None] * len(ctx.dim(s)) for s in inputs if ctx.has(s) and s not in same}
        made = {s: names for s in outputs if ctx.has(s) and ctx.dim(s) == shape}
        if len(made) < sum(ctx.has(s) for s in outputs) or any(n != 1 for s in others for n in ctx.dim(s)):
            return []
        found = factors({**dict.fromkeys(same, names), **others}, made, linear=linear)
        return [replace(s, random=True) for s in found] if random else found

    return rule


def binary(linear: Sequence[Sequence[str]] = (), slots: Sequence[str] = ("X", "Y", "Out")) -> Rule:
    """The rule of element-wise functions of X and Y, which may be broadcast to each other.

    Args:
        linear: See factors: (("X", "Y"),) for sums, (("X",), ("Y",)) for products.
        slots: The names of X, Y and Out.

    Returns:
        The rule.
    """
    x, y, out = slots

    def rule(ctx: SbpContext) -> list[Signature]:
        xs, ys = broadcast_names(ctx, x, y, out)
        outs = [n if n in xs or n in ys else None for n in letters(len(ctx.dim(out)))]
        return factors({x: xs, y: ys}, {out: outs}, linear=linear)

    return rule


def sequences(
    inputs: Sequence[str],
    outputs: Sequence[str],
    per_sequence: Sequence[str] = (),
    sums: Sequence[str] = (),
    same_lod: Sequence[str] = (),
) -> Rule:
    """The rule of ops that treat each sequence of a LoD alone: whole sequences may be split.

    Args:
        inputs: Slots that are split; other inputs stay whole.
        outputs: Output slots that are split likewise.
        per_sequence: Those without LoD that have a row for each sequence.
        sums: Output slots that are sums over all sequences.
        same_lod: Input slots whose rows the op takes by the LoD of the first of them.

    Returns:
        The rule.
    """

    def rule(ctx: SbpContext) -> list[Signature]:
        ins = {s: split(0) for s in inputs if ctx.has(s)}
        outs = {s: split(0) for s in outputs} | dict.fromkeys(sums, partial_sum)
        return [Signature(ins, outs, by_sequence=tuple(per_sequence), same_lod=tuple(same_lod))]

    return rule


def leading(inputs: Sequence[str], outputs: Sequence[str], count: int | Callable[[SbpContext], int] = 1) -> Rule:
    """The rule of ops that treat rows alone: the first dims, which all of these tensors share, may be split.

    Args:
        inputs: Slots whose first dims are rows; other inputs stay whole.
        outputs: Slots whose first dims are rows.
        count: How many first dims, or a function of the context.

    Returns:
        The rule.
    """

    def rule(ctx: SbpContext) -> list[Signature]:
        n = count if isinstance(count, int) else count(ctx)
        first = ctx.dim(inputs[0])[:n]

        def names(slot: str) -> list[str | None]:
            shape = ctx.dim(slot)
            return [
                chr(ord("a") + k) if k < len(first) and first[: k + 1] == shape[: k + 1] else None
                for k in range(len(shape))
            ]

        ins = {slot: names(slot) for slot in inputs if ctx.has(slot)}
        outs = {slot: names(slot) for slot in outputs if ctx.has(slot)}
        shared = set.intersection(*[set(v) for v in (*ins.values(), *outs.values())]) - {None}
        every = {n for v in (*ins.values(), *outs.values()) for n in v if n is not None}
        return factors(ins, outs, no=every - shared)

    return rule


def all_but(attr: str, default: int = -1) -> Rule:
    """The rule of functions X -> Out along one dim, such as a softmax: any other dim may be split.

    Args:
        attr: The attribute that says which dim.
        default: Its default.

    Returns:
        The rule.
    """

    def rule(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr(attr, default)
        axes = axis if isinstance(axis, list | tuple) else [axis]
        return factors({"X": names}, {"Out": names}, no=[names[a] for a in axes if -len(names) <= a < len(names)])  # type: ignore[misc]

    return rule


def regrouped(ctx: SbpContext) -> list[Signature]:
    """The rule of X -> Out, the same elements in other dims: a dim that stays the first of its group may be split."""
    before, after, shared = merged_names(ctx.dim("X"), ctx.dim("Out"))
    return factors({"X": before}, {"Out": after}, linear=(("X",),), shared=shared)


def reduction(op: str) -> Rule:
    """The rule of reductions X -> Out over the dims `dim`, or over all of them when reduce_all is set.

    Args:
        op: "sum", "mean", or "other" for one that can't be put together from those of parts.

    Returns:
        The rule.
    """

    def rule(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        over = ctx.attr("dim", [])
        over = [over] if isinstance(over, int) else list(over or [])
        all_of_them = ctx.attr("reduce_all", False) or not over
        gone = set(range(len(names))) if all_of_them else {d % len(names) for d in over}
        keep = len(ctx.dim("Out")) == len(names)
        outs = [None if k in gone else n for k, n in enumerate(names) if keep or k not in gone]
        reduced = [n for k, n in enumerate(names) if k in gone and n is not None]
        if len(outs) != len(ctx.dim("Out")):  # Fluid's result of all elements may be [1]
            outs = [None] * len(ctx.dim("Out"))
        return factors(
            {"X": names},
            {"Out": outs},
            linear=(("X",),) if op in ("sum", "mean") else (),
            mean=reduced if op == "mean" else (),
            no=reduced if op == "other" else (),
        )

    return rule


def convolution(ctx: SbpContext) -> list[Signature]:
    """The rule of convolutions: images, output channels, and input channels where all see each other."""
    layout = str(ctx.attr("data_format", "NCHW"))
    dims = [None] * (len(ctx.dim("Input")) - 2)
    one_group = ctx.attr("groups", 1) == 1
    c, o = ("c", "o") if one_group else (None, None)
    last = layout.endswith("C")
    x = ["n", *dims, c] if last else ["n", c, *dims]
    y = ["n", *dims, o] if last else ["n", o, *dims]
    return factors(
        {"Input": x, "Filter": [o, c, *dims]},
        {"Output": y},
        linear=(("Input",), ("Filter",)) if one_group else (("Input",),),
    )


def transposed_convolution(ctx: SbpContext) -> list[Signature]:
    """The rule of transposed convolutions, whose filters are [input channels, output channels / groups, ...]."""
    last = str(ctx.attr("data_format", "NCHW")).endswith("C")
    dims = [None] * (len(ctx.dim("Input")) - 2)
    c, o = ("c", "o") if ctx.attr("groups", 1) == 1 else (None, None)
    x, y = (["n", *dims, c], ["n", *dims, o]) if last else (["n", c, *dims], ["n", o, *dims])
    linear = (("Input",), ("Filter",)) if c else (("Input",),)
    return factors({"Input": x, "Filter": [c, o, *dims]}, {"Output": y}, linear=linear)
