"""From a program of one rank to that of each rank of a placement, op by op.

Every variable has a layout, and the program holds this rank's part of it. An op is computed on parts by the signature
that costs least where its inputs are, as an eager call with global tensors is, and ops between ranks bring its inputs
there. Gradient ops follow the signature of their forward op.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oprack.desc import BlockDesc, OpDesc
from oprack.op.info import OpInfo
from oprack.op.sbp import SbpContext, Signature, broadcast
from oprack.packs.manager import default_manager
from oprack.parallel.layouts.layout import Layout, Placement, grad_layout, input_grad_layout, output_grad_layout
from oprack.parallel.layouts.signatures import REPLICATED, Choice, candidates, choose
from oprack.parallel.programs.boxing_ops import ProgramBoxing
from oprack.parallel.programs.facts import (
    Argument,
    arguments,
    declared_attrs,
    gives_equal_parts,
    is_integer,
    is_plain,
    itemsize,
    require_whole_attrs,
    results,
    splits_evenly,
)
from oprack.parallel.programs.gradients import Gradient, gradients_of, is_backward
from oprack.parallel.programs.stand_ins import forward_on_parts, gradient_on_parts

_PLACES = 1_000_000
"""So far apart are the places by which two ranks' parts of one tensor draw random numbers."""


@dataclass
class Computed:
    """How an op of the forward pass is computed on parts.

    Attributes:
        choice: The signature of each axis, and the layouts that follow.
        sources: The layout of each input variable.
        inputs: (slot, position) of an input -> (the layout in which the op reads it, the variable that has it so).
        outputs: (slot, position) of an output -> (the layout in which the op writes it, the variable that it writes).
        attrs: Attributes that hold sizes of this rank's parts.
        share: This rank's weight in outputs that are means.
        op: The op that each rank runs.
    """

    choice: Choice
    sources: dict[tuple[str, int], Layout] = field(default_factory=dict)
    inputs: dict[tuple[str, int], tuple[Layout, str]] = field(default_factory=dict)
    outputs: dict[tuple[str, int], tuple[Layout, str]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    share: float = 1.0
    op: OpDesc | None = None


class Rewriter:
    """Rewrites the ops of a block.

    Args:
        block: The block, which is rewritten in place.
        logical: The same block as it is on one rank, with sizes for all dims.
        placement: The grid of ranks.
        layouts: The layouts of variables that have one before the first op.
        fixed: Those of them that keep it, whatever op writes them: parameters and state of optimizers.
    """

    def __init__(
        self,
        block: BlockDesc,
        logical: BlockDesc,
        placement: Placement,
        layouts: Mapping[str, Layout],
        fixed: Mapping[str, Layout],
    ) -> None:
        self.block, self.logical, self.placement = block, logical, placement
        self.layouts, self.fixed = dict(layouts), dict(fixed)
        self.everywhere = placement.layout(["B"] * len(placement.shape))
        self.ops: list[OpDesc] = []
        self.boxing = ProgramBoxing(block, self.ops.append)
        self._copies: dict[str, dict[Layout, str]] = {}
        self._sums: dict[str, tuple[Layout, str]] = {}
        self._computed: dict[int, Computed] = {}
        self._gradients = gradients_of(block)
        self._results = results(block)

    def run(self) -> None:
        """Rewrite all ops."""
        for position, op in enumerate(list(self.block.ops)):
            self.boxing.role = int(op.attr("op_role", 0))
            # Random numbers are drawn by the place that the op has in the program of one rank.
            found = op.clone()
            found.origin = position if op.origin is None else op.origin
            gradient = self._gradients.get(position)
            if op.type in ("feed", "fetch"):
                self._outside(found)
            elif gradient is not None and gradient.forward in self._computed:
                self._gradient(found, gradient, self._computed[gradient.forward])
            else:
                self._ordinary(found, position)
        self.block.ops = self.ops

    def _outside(self, op: OpDesc) -> None:
        """A feed op, which brings this rank's part, or a fetch op, which takes the whole."""
        if op.type == "fetch":
            for slot, i, name in arguments(op.inputs):
                op.inputs[slot][i] = self._boxed(name, self.everywhere)
        self.ops.append(op)

    # Ops that choose a signature --------------------------------------------------------------------------------------
    def _ordinary(self, op: OpDesc, position: int) -> None:
        info = default_manager().op_info(op.type)
        require_whole_attrs(op, {n: self._source(n)[0] for names in op.var_attrs().values() for n in names})
        ins, outs = arguments(op.inputs), arguments(op.outputs)
        sources = [self._source(name)[0] for _, _, name in ins]
        choice = self._chosen(op, info, ins, outs, sources)
        computed = self._computed[position] = Computed(choice)
        for (slot, i, name), source, target in zip(ins, sources, choice.inputs, strict=True):
            assert target is not None
            own = self._boxed(name, target)
            op.inputs[slot][i] = own
            computed.sources[slot, i], computed.inputs[slot, i] = source, (target, own)
        self._localize(op, choice, computed)
        slots, shapes = [slot for slot, _, _ in ins], [self._shape(name) for _, _, name in ins]
        op = computed.op = forward_on_parts(op, info, self._attrs(op, info), choice, slots, shapes)
        for argument, layout in zip(outs, choice.outputs, strict=True):
            computed.outputs[argument[:2]] = layout, self._written(op, argument, computed, layout)
        self.ops.append(op)
        for slot, i, name in outs:
            layout, own = computed.outputs[slot, i]
            self._finish(
                name, own, layout, self._wanted(name, layout, op), computed.share if layout.is_partial else 1.0
            )

    def _chosen(
        self, op: OpDesc, info: OpInfo, ins: Sequence[Argument], outs: Sequence[Argument], sources: Sequence[Layout]
    ) -> Choice:
        dims: dict[str, list[Any]] = {}
        for slot, _, name in (*ins, *outs):
            dims.setdefault(slot, []).append(self._shape(name))
        shapes = [self._shape(name) for _, _, name in ins]
        # Scratch that no kernel writes has no shape.
        made = [name for slot, _, name in outs if not info.proto.outputs[slot].extra]
        variables = [self.logical.find_var_recursive(name) for name in (*(name for _, _, name in ins), *made)]
        rule = info.sbp if all(is_plain(v) for v in variables) else None
        integers = [slot for slot, _, name in ins if is_integer(self.logical.find_var_recursive(name))]
        found = candidates(rule, SbpContext(op.type, self._attrs(op, info), dims), integers)
        found = [s for s in found if s.by_sequence is None]  # programs split dense tensors alone
        sizes = [itemsize(self.logical.find_var_recursive(name)) for _, _, name in ins]
        slots_in, slots_out = [slot for slot, _, _ in ins], [slot for slot, _, _ in outs]
        kept = [(slot, self.fixed[name]) for slot, _, name in outs if name in self.fixed]

        everything = (*ins, *outs)

        def allowed(signature: Signature, axis: int) -> bool:
            if any(signature.outputs.get(slot, broadcast) != layout.sbps[axis] for slot, layout in kept):
                return False
            # Nothing is split that was not before: a slice is free where it is made, but somebody has to gather it. And
            # nothing is gathered to keep a partial sum, which somebody has to add in the end.
            wanted = [signature.inputs.get(slot, broadcast) for slot in slots_in]
            changes = [(w, s.sbps[axis]) for w, s in zip(wanted, sources, strict=True)]
            splits = [w == s for w, s in changes if w.kind == "S"]
            gathered = any(s.kind == "S" and w.kind != "S" for w, s in changes)
            if (splits and not kept and not any(splits)) or (gathered and any(w.kind == "P" for w in wanted)):
                return False
            return all(
                gives_equal_parts(signature, s, self._shape(name), self.placement.shape[axis])
                for s, _, name in everything
            )

        def chosen(options: Sequence[Signature], judge: Any) -> Choice:
            return choose(options, self.placement, slots_in, slots_out, list(sources), shapes, sizes, judge)

        choice = chosen(found, allowed)
        layouts = zip((*choice.inputs, *choice.outputs), (*ins, *outs), strict=True)
        if not all(splits_evenly(layout, self._shape(name)) for layout, (_, _, name) in layouts):
            return chosen([REPLICATED], None)
        return choice

    @staticmethod
    def _attrs(op: OpDesc, info: OpInfo) -> dict[str, Any]:
        """The op's attributes, with defaults."""
        return dict(info.checker.check(declared_attrs(op, info), op.var_attrs())) if info.checker else dict(op.attrs)

    def _localize(self, op: OpDesc, choice: Choice, computed: Computed) -> None:
        """Give the op sizes of this rank's parts, draws of its own, and the share of a mean that it computes."""
        number = 0
        for k, signature in enumerate(choice.signatures):
            number = number * self.placement.shape[k] + (self.placement.coords[k] if signature.random else 0)
        op.origin = (op.origin or 0) + number * _PLACES
        for signature, ranks in zip(choice.signatures, self.placement.shape, strict=True):
            if signature.share is not None:
                computed.share /= ranks
            computed.attrs |= signature.attrs
            for attr, slot in signature.sizes.items():
                name = op.outputs[slot][0]
                k = [s for s, _, _ in arguments(op.outputs)].index(slot)
                whole = self._shape(name) or ()
                local = choice.outputs[k].local_shape(whole)
                said = list(op.attr(attr, []) or whole)
                if len(said) == len(whole):
                    # -1 and 0 stand for what the input has, which is this rank's part.
                    sizes = [g if g in (-1, 0) or a == b else b for g, a, b in zip(said, whole, local, strict=True)]
                    computed.attrs[attr] = sizes
        for attr, value in computed.attrs.items():
            op.set_attr(attr, value)

    # Gradients --------------------------------------------------------------------------------------------------------
    def _gradient(self, op: OpDesc, gradient: Gradient, computed: Computed) -> None:
        choice = computed.choice
        assert computed.op is not None
        op, grad = gradient_on_parts(op, gradient.grad, computed.op)
        for attr, value in computed.attrs.items():
            if attr in op.attrs:
                op.set_attr(attr, value)
        for slot, at, name in arguments(op.inputs):
            ref = grad.inputs[slot]
            key = ref.slot, at if ref.index is None else ref.index
            if ref.role == "input":
                op.inputs[slot][at] = computed.inputs[key][1]
            elif ref.role == "output":
                op.inputs[slot][at] = computed.outputs[key][1]
            else:
                op.inputs[slot][at] = self._arrived(name, computed, computed.outputs[key][0])
        made = []
        for slot, at, name in arguments(op.outputs):
            ref = grad.outputs[slot]
            key = ref.slot, at if ref.index is None else ref.index
            leaving = input_grad_layout(computed.inputs[key][0], choice.splits)
            wanted = grad_layout(computed.sources[key], leaving)
            own = name if wanted is leaving else self.boxing.new_var(name, "OWN")
            op.outputs[slot][at] = own
            made.append((name, own, leaving, wanted))
        self.ops.append(op)
        for name, own, leaving, wanted in made:
            self._finish(name, own, leaving, wanted, 1.0)

    def _arrived(self, name: str, computed: Computed, layout: Layout) -> str:
        """The variable that has the gradient of an output, of which the forward op wrote a layout."""
        own = self._boxed(name, output_grad_layout(layout))
        return self.boxing.scaled(own, computed.share) if computed.share != 1.0 and layout.is_partial else own

    # Variables --------------------------------------------------------------------------------------------------------
    def _source(self, name: str) -> tuple[Layout, str]:
        """Where a variable is to be taken from: its layout, and the variable that has it so."""
        # Partial sums that were added for one reader are not added again for the next.
        return self._sums.get(name) or (self.layouts.get(name, self.everywhere), name)

    def _boxed(self, name: str, target: Layout) -> str:
        """The variable that has a variable in another layout."""
        source, own = self._source(name)
        if source is target:
            return own
        copies = self._copies.setdefault(name, {})
        if target not in copies:
            copies[target] = self.boxing.box(own, len(self._shape(name) or ()), source, target)
            if source.is_partial and not target.is_partial:
                self._sums[name] = target, copies[target]
        return copies[target]

    def _written(self, op: OpDesc, argument: Argument, computed: Computed, layout: Layout) -> str:
        """The variable that the op writes instead of an output that has to be brought into another layout."""
        slot, i, name = argument
        weighted = computed.share != 1.0 and layout.is_partial
        if self._wanted(name, layout, op) is not layout or weighted:
            op.outputs[slot][i] = self.boxing.new_var(name, "OWN")
        return op.outputs[slot][i]

    def _wanted(self, name: str, layout: Layout, op: OpDesc) -> Layout:
        """The layout that a variable gets which an op writes in a layout."""
        if name in self.fixed:
            return self.fixed[name]
        # A loss or a metric, which nothing reads but those who fetch it.
        if name in self._results and layout.is_partial and not is_backward(op):
            return output_grad_layout(layout)
        return layout

    def _finish(self, name: str, own: str, layout: Layout, wanted: Layout, share: float) -> None:
        """Bring what an op wrote into the variable and the layout that it is wanted in."""
        self._copies.pop(name, None)
        self._sums.pop(name, None)
        if share != 1.0:
            own = self.boxing.scaled(own, share, name if wanted is layout else None)
        if own != name:
            self.boxing.box(own, len(self._shape(name) or ()), layout, wanted, name)
        self.layouts[name] = wanted

    def _shape(self, name: str) -> tuple[int, ...] | None:
        var = self.logical.find_var_recursive(name)
        return None if var is None or var.shape is None else tuple(var.shape)
