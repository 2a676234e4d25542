"""distribute: programs of one rank made into those of each rank of a placement."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oprack.autodiff.appender import OpRole
from oprack.desc import BlockDesc, OpDesc, ProgramDesc
from oprack.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager
from oprack.parallel.layouts.boxing import box
from oprack.parallel.layouts.layout import Layout, Placement
from oprack.parallel.programs.boxing_ops import ProgramBoxing
from oprack.parallel.programs.facts import require_even
from oprack.parallel.programs.rewriter import Rewriter
from oprack.parallel.rings import ring_number
from oprack.program import Program
from oprack.tensor import LoDTensor, Scope
from oprack.types import VarType

_ROWS = 16
"""So many rows of a batch are taken for each rank when costs are compared."""


@dataclass(frozen=True)
class Distributed:
    """The programs of this rank.

    Attributes:
        main: The program that trains or infers.
        startup: The program that fills the parameters.
        layouts: Name of each persistable variable -> its layout.
        shapes: Name of each persistable variable -> its shape on one rank.
    """

    main: Program
    startup: Program
    layouts: Mapping[str, Layout]
    shapes: Mapping[str, tuple[int, ...]]

    def state(self, scope: Scope) -> dict[str, Any]:
        """The whole values of parameters and of an optimizer's state; every rank must call it.

        Args:
            scope: Where the programs ran.

        Returns:
            An array for each persistable variable that has a dense value, in the programs' order.

        Raises:
            CollectiveError: The ranks have values of other variables.
        """
        found = {}
        for name, layout in self.layouts.items():
            var = scope.find_var(name)
            if var is not None and isinstance(var.value, LoDTensor):
                whole = layout.placement.layout(["B"] * len(layout.sbps))
                found[name] = box(var.value.array, self.shapes[name], layout, whole).copy()
        return found

    def set_state(self, scope: Scope, values: Mapping[str, Any]) -> None:
        """Give this rank its parts of whole values, such as those of a file.

        Args:
            scope: Where the programs run.
            values: An array for each variable; those that the programs do not keep are left out.

        Raises:
            InvalidArgumentError: A value has another shape than the variable.
        """
        for name, value in values.items():
            layout = self.layouts.get(name)
            if layout is None:
                continue
            if tuple(value.shape) != self.shapes[name]:
                raise InvalidArgumentError(
                    f"set_state: {name!r} has shape {list(value.shape)}; expected {list(self.shapes[name])}, that of "
                    "the whole"
                )
            scope.var(name).set(value[layout.part(value.shape)].copy())


def distribute(
    main: Program, startup: Program, placement: Placement, layouts: Mapping[str, Any] | None = None
) -> Distributed:
    """Make the programs of one rank into those of this rank; every rank of the placement must call it.

    Optimizer, regularization and gradient clipping belong to `main` already. Each rank feeds its part of what is split,
    the same number of rows on every rank, and runs with the same seed. What the program's fetch ops read is whole on
    each rank, and so are sums that no other op reads, such as a loss; others are this rank's parts or summands.

    Args:
        main: The program; it is not changed.
        startup: The program that fills its parameters; it is not changed. Values are drawn whole, taken from the first
            rank, and cut to parts.
        placement: The grid of ranks.
        layouts: Name of a parameter or a feed, or a pattern of names -> its sbp; the first that matches counts. What
            matches none is whole on each rank. State of optimizers lies as its parameter.

    Returns:
        The programs of this rank.

    Raises:
        InvalidArgumentError: A layout does not fit a shape, or splits it unevenly.
        NotFoundError: A pattern matches nothing, or no pack brings ops between ranks.
        UnimplementedError: A parameter or a feed is no dense tensor, or is wanted as a partial sum.
    """
    found, begin = main.clone(), startup.clone()
    logical = _with_sizes(main.desc, _ROWS * math.prod(placement.shape))
    block = found.desc.blocks[0]
    feeds, kept = list(_fed(block)), [v.name for v in block.vars.values() if is_kept(v)]
    given = _layouts(placement, layouts or {}, logical.blocks[0], feeds, kept)
    fixed = {name: given[name] for name in kept}
    named = _named(layouts or {}, kept)
    for name, state in _state(block, kept):
        if state not in named:
            fixed[state] = given[state] = given[name]
    rewriter = Rewriter(block, logical.blocks[0], placement, given, fixed)
    rewriter.run()
    give_all_ranks(begin.desc.blocks[0], placement, fixed)
    for name in (*feeds, *kept):
        for desc in (found.desc, begin.desc):
            var = desc.blocks[0].find_var(name)
            if var is not None and var.shape is not None:
                var.shape = _local_shape(var.shape, given[name])
    _infer(found.desc)
    shapes = {name: tuple(logical.blocks[0].var(name).shape or ()) for name in fixed}
    return Distributed(found, begin, fixed, shapes)


def _local_shape(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    known = layout.local_shape([max(d, 0) for d in shape])
    return tuple([d if d < 0 else k for d, k in zip(shape, known, strict=True)])


def is_kept(var: Any) -> bool:
    return bool(var.persistable) and var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)


def _fed(block: BlockDesc) -> Iterator[str]:
    """Variables that ops read before any writes them, and that no run before left behind."""
    written: set[str] = set()
    for op in block.ops:
        if op.type == "feed":
            yield from op.output_arg_names()
            written.update(op.output_arg_names())
            continue
        for name in op.input_arg_names():
            var = block.find_var(name)
            if name not in written and var is not None and not var.persistable:
                written.add(name)
                yield name
        written.update(op.output_arg_names())


def _layouts(
    placement: Placement, rules: Mapping[str, Any], block: BlockDesc, feeds: list[str], kept: list[str]
) -> dict[str, Layout]:
    everywhere = placement.layout(["B"] * len(placement.shape))
    found, used = {}, set()
    for name in (*feeds, *kept):
        pattern = next((p for p in rules if fnmatch.fnmatchcase(name, p)), None)
        if pattern is None:
            found[name] = everywhere
            continue
        used.add(pattern)
        layout = found[name] = placement.layout(rules[pattern])
        var = block.var(name)
        if layout.is_partial:
            raise UnimplementedError(f"distribute: {name!r} in {layout!r}; expected splits and broadcasts")
        if not layout.is_broadcast and (var.type != VarType.LOD_TENSOR or var.lod_level or var.shape is None):
            raise UnimplementedError(
                f"distribute: {name!r} in {layout!r} is a {var.type.name} with LoD level {var.lod_level}; only dense "
                "tensors without LoD are split"
            )
        require_even(name, layout, var.shape or ())
    unused = [p for p in rules if p not in used]
    if unused:
        raise NotFoundError(
            f"distribute: {unused} match no parameter and no feed; feeds are {', '.join(feeds)}, parameters "
            f"{', '.join(kept[:5])} ..."
        )
    return found


def _named(rules: Mapping[str, Any], names: list[str]) -> set[str]:
    return {n for n in names if any(fnmatch.fnmatchcase(n, p) for p in rules)}


def _state(block: BlockDesc, kept: list[str]) -> Iterator[tuple[str, str]]:
    """(parameter, what an optimizer keeps of it in its shape)."""
    names = set(kept)
    for op in block.ops:
        if not op.attr("op_role", 0) & OpRole.OPTIMIZE:
            continue
        updated = [n for n in op.input_arg_names() if n in names and n in op.output_arg_names()]
        parameters = [n for n in updated if block.var(n).is_parameter]
        for name in updated:
            for parameter in parameters[:1]:
                if name != parameter and block.var(name).shape == block.var(parameter).shape:
                    yield parameter, name


def _with_sizes(desc: ProgramDesc, rows: int) -> ProgramDesc:
    """A copy of a program of which every dim that a batch decides has `rows`."""
    found = desc.clone()
    if len(found.blocks) > 1:
        raise UnimplementedError(
            f"distribute: the program has {len(found.blocks)} blocks; expected one without loops and "
            "branches; parallel.average_gradients takes those for ranks that have data of their own"
        )
    block = found.blocks[0]
    for name in _fed(block):
        var = block.var(name)
        if var.shape is not None:
            var.shape = tuple([rows if d < 0 else d for d in var.shape])
    _infer(found)
    return found


def _infer(desc: ProgramDesc) -> None:
    manager = default_manager()
    for op in desc.blocks[0].ops:
        if op.type not in ("feed", "fetch"):
            infer_op(op, desc.blocks[0], manager.op_info(op.type))


def give_all_ranks(block: BlockDesc, placement: Placement, layouts: Mapping[str, Layout]) -> None:
    """Let a startup program give every rank its parts of what the first rank drew."""
    made: list[OpDesc] = []
    boxing = ProgramBoxing(block, made.append)
    ring = ring_number(placement.world)
    written = {n for op in block.ops for n in op.output_arg_names()}
    everywhere = placement.layout(["B"] * len(placement.shape))
    for name, layout in layouts.items():
        var = block.find_var(name)
        if var is None or name not in written:
            continue
        if var.shape is None:
            raise InvalidArgumentError(f"distribute: {name!r} has no shape in the startup program; expected one")
        boxing.broadcast(name, ring)
        if not layout.is_broadcast:
            boxing.box(name, len(var.shape), everywhere, layout, name)
    block.ops = [*block.ops, *made]
