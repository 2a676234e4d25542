"""What a call with global tensors does: it chooses a signature, brings arguments into its layouts, and runs parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from oprack.autograd.unchanged import overwritten
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import other_draws
from oprack.eager_tensor.meta import TensorMeta, meta_of_value
from oprack.interpreter.call_generator import Wrapping
from oprack.interpreter.eager import RuleMaker, generated_call
from oprack.interpreter.op_expr import OpExpr
from oprack.nn.parameter import Parameter
from oprack.op.sbp import SbpContext, Signature, split
from oprack.parallel.eager.ahead import Ahead
from oprack.parallel.eager.arguments import Metas, formed
from oprack.parallel.eager.gathering import tell_of_gathering
from oprack.parallel.eager.global_rule import GlobalRule
from oprack.parallel.eager.global_tensor import box_part
from oprack.parallel.eager.logical_shapes import logical_shapes
from oprack.parallel.eager.via import op_on_parts
from oprack.parallel.layouts.layout import Layout, Placement, layout_of
from oprack.parallel.layouts.signatures import Choice, candidates, choose
from oprack.tensor import LoDTensor, SelectedRows

PLANS = 1024  # batches or shapes for which a call remembers its plan


class Plan:
    """What a call does for arguments of certain metas and shapes.

    Attributes:
        choice: The signature of each axis, and the layouts that follow.
        shapes: Logical shapes of the arguments.
        results: Logical shapes of the outputs, flat; None for those that are not computed.
    """

    def __init__(
        self, expr: OpExpr, metas: Metas, shapes: Sequence[Any], placement: Placement, make_rule: RuleMaker | None
    ) -> None:
        self.expr, self.shapes, self.placement, self.make_rule = expr, shapes, placement, make_rule
        slots_in = [slot for slot, n in expr.inputs for _ in range(n)]
        slots_out = [slot for slot, flags in expr.outputs for _ in flags]
        everywhere = placement.layout(["B"] * len(placement.shape))
        self.sources = tuple(None if m is None else (layout_of(m) or everywhere).even for m in metas)
        self.results = self._results(metas)
        self.choice = self._chosen(slots_in, slots_out, metas)
        self._agree(metas)
        self.wanted = tuple(
            None if target is None or target is source else target
            for source, target in zip(self.sources, self.choice.inputs, strict=True)
        )
        self.share = self._share(slots_in)
        self._draws = self._draws_of_its_own()
        self.local = self._local_expr(slots_in, slots_out)
        self.call: Callable[..., Any] = self._run
        """What runs a call with these arguments: the function of the parts itself once that is all there is to it."""
        self._calls: dict[Any, Callable[..., Any]] = {}  # by metas of the parts

    def _agree(self, metas: Metas) -> None:
        """Compare the choice among the ranks: those that lay a tensor out differently compute garbage, or hang."""
        expr, here = self.expr, self.placement
        if here.world.size == 1:
            return
        attrs = repr(sorted((k, repr(v)) for k, v in expr.attrs.items()))
        dtypes = tuple([None if m is None else str(m.dtype) for m in metas])
        sources = tuple([None if s is None else s.sbps for s in self.sources])
        key = (expr.type, attrs, dtypes, sources, here.shape, here.axes, tuple(self._differentiated), self._agreed_on())
        layouts = [
            [None if y is None else repr(y.sbps) for y in ys] for ys in (self.choice.inputs, self.choice.outputs)
        ]
        here.world.agree(key, layouts, f"layouts of op {expr.type}")

    def _agreed_on(self) -> Any:
        """What else decides: a choice of the same is compared once."""
        return tuple(self.shapes)

    def _results(self, metas: Metas) -> list[Any] | None:
        return logical_shapes(self.expr, metas, self.shapes)[0]

    def _chosen(self, slots_in: list[str], slots_out: list[str], metas: Metas) -> Choice:
        expr, rule = self.expr, self.expr.info.sbp
        sparse = any(m is not None and m.container is not LoDTensor for m in metas)
        if rule is None or sparse or self.results is None:
            if rule is None:
                tell_of_gathering(expr.info, self.sources)
            rule = None
        dims: dict[str, list[Any]] = {}
        for slot, shape in [
            *zip(slots_in, self.shapes, strict=True),
            *zip(slots_out, self.results or (), strict=False),
        ]:
            dims.setdefault(slot, []).append(shape)
        dtypes = ((slot, m.dtype) for slot, m in zip(slots_in, metas, strict=True) if m is not None)
        integers = [slot for slot, dtype in dtypes if dtype is not None and dtype.kind in "iub"]
        with_lod = {slot for slot, m in zip(slots_in, metas, strict=True) if m is not None and m.lod_level}
        found = candidates(rule, SbpContext(expr.type, expr.attrs, dims, with_lod), integers)
        found = self._fitting(found, slots_in, slots_out)
        sizes = [4 if m is None or m.dtype is None else int(m.dtype.itemsize) for m in metas]
        self._differentiated = [self.make_rule is not None and m is not None and m.grad for m in metas]
        return self._choose(found, slots_in, slots_out, sizes)

    def _choose(
        self, found: Sequence[Signature], slots_in: list[str], slots_out: list[str], sizes: Sequence[int]
    ) -> Choice:
        here, shapes, results, grads = self.placement, self.shapes, self.results or (), self._differentiated
        return choose(found, here, slots_in, slots_out, self.sources, shapes, sizes, None, results, grads)

    def _fitting(self, found: list[Signature], slots_in: Sequence[str], slots_out: Sequence[str]) -> list[Signature]:
        """Those of the op's signatures that may be used: rows are cut between sequences only where these are known."""
        return [
            s
            for s in found
            if s.by_sequence is None
            or all(slot in s.by_sequence for slot in slots_in if s.inputs.get(slot) == split(0))
        ]

    def _share(self, slots_in: Sequence[str]) -> float:
        """This rank's weight in outputs that are means over a dim which is split."""
        share = 1.0
        for axis, signature in enumerate(self.choice.signatures):
            if signature.share is None:
                continue
            slot, dim = signature.share
            k = slots_in.index(slot)
            layout, shape = self.choice.inputs[k], self.shapes[k]
            assert layout is not None
            share *= self._share_of(axis, k, dim, layout, shape)
        return share

    def _share_of(self, axis: int, k: int, dim: int, layout: Layout, shape: tuple[int, ...]) -> float:
        # The part of this axis alone: what the axes inside and outside of it split is weighted by themselves.
        outer = layout.placement.layout([*layout.sbps[:axis], *["B"] * (len(layout.sbps) - axis)])
        through = layout.placement.layout([*layout.sbps[: axis + 1], *["B"] * (len(layout.sbps) - axis - 1)])
        return through.local_shape(shape)[dim] / outer.local_shape(shape)[dim]

    def _local_shape(self, k: int) -> list[int]:
        """The shape of this rank's part of an output."""
        assert self.results is not None
        return list(self.choice.outputs[k].local_shape(self.results[k]))

    def _draws_of_its_own(self) -> int:
        """A number for the random draws of this rank's parts, which differ where the tensors are split; else 0."""
        axes = [k for k, s in enumerate(self.choice.signatures) if s.random]
        if not axes:
            return 0
        number = 0
        for k in axes:
            number = number * self.placement.shape[k] + self.placement.coords[k]
        return number

    def _local_expr(self, slots_in: list[str], slots_out: list[str]) -> OpExpr:
        """The expression that each rank runs on its parts."""
        expr, attrs = self.expr, dict(self.expr.attrs)
        for signature in self.choice.signatures:
            attrs |= signature.attrs
            for name, slot in signature.sizes.items():
                k = slots_out.index(slot)
                assert self.results is not None
                attrs[name] = self._local_shape(k)
        info, attrs = op_on_parts(expr.info, attrs, self.choice, slots_in, self.shapes)
        if info is expr.info and attrs == expr.attrs:
            return expr
        return OpExpr(info, attrs, expr.inputs, expr.outputs, None, expr.flat or info is not expr.info, expr.rules)

    # Running ----------------------------------------------------------------------------------------------------------
    def _run(self, *args: Tensor | None) -> Any:
        """The results of a call."""
        parts = [self._part(k, a) for k, a in enumerate(args)] if any(self.wanted) else args
        with other_draws(self._draws) if self._draws else nullcontext():
            made = self._computed(parts)
        return formed(self.expr, made) if self.local.flat and not self.expr.flat else made

    def _computed(self, parts: Sequence[Tensor | None]) -> Any:
        metas = tuple([None if p is None else p._meta for p in parts])
        found = self._calls.get(metas)
        if found is not None:
            return found(*parts)
        here = [None if p is None else local_part(p) for p in parts]
        local = tuple([None if p is None else p._meta for p in here])
        call, values, complete = generated_call(self.local, local, here, self.make_rule, self._wrapping)
        if complete:
            self._calls[metas] = call
            if not any(self.wanted) and not self._draws and self.local.flat == self.expr.flat:
                self.call = call
        return call(*parts) if values is None else call(*parts, values=values)

    def _part(self, k: int, a: Tensor | None) -> Tensor | None:
        """This rank's part of an argument in the layout that the signature wants, at its place in the graph."""
        source, target = self.sources[k], self.wanted[k]
        if a is None or source is None or target is None:
            return a
        value = Ahead.of(self.placement.world).whole(a, source, target) if isinstance(a, Parameter) else None
        gathered = value is not None
        if value is None:
            value = box_part(a._value, self.shapes[k], source, target)
        meta = meta_of_value(value, a._meta.place, a._meta.lod_level)
        part = new_tensor(value, meta.with_grad if a._meta.grad else meta, a._lod)
        part._node = a._node
        if gathered:
            part._gathered = k, a, a._version  # type: ignore[attr-defined]
        return part

    def _wrapping(self, inner: Any) -> tuple[Any, Wrapping]:
        return None if inner is None else GlobalRule(self, inner), self

    # What tensors of the results are; see Wrapping
    def meta(self, j: int, made: TensorMeta) -> TensorMeta:
        """The meta of an output."""
        return self.choice.outputs[j].meta(made)

    def shape(self, j: int) -> tuple[int, ...] | None:
        """The logical shape of an output; None where that of the part tells it."""
        return None if self.results is None or self.results[j] is None else tuple(self.results[j])

    def weighing(self, j: int, made: TensorMeta) -> Callable[[Any], Any] | None:
        """What makes this rank's summand of a mean of what was computed."""
        if self.share == 1.0 or not self.choice.outputs[j].is_partial or made.container is SelectedRows:
            return None
        # The mean of no rows is no number, and no summand either.
        return (lambda value: value * np.asarray(self.share, value.dtype)) if self.share else np.zeros_like

    def kept(self, x: Tensor) -> Tensor:
        """What a gradient reads of an argument: this rank's part, which keeps the value that it has now.

        Of a parameter that was gathered it is where it comes from, from which `again` gathers it.
        """
        gathered = x.__dict__.get("_gathered")
        if gathered is None:
            return local_part(x)
        hollow = new_tensor(None, x._meta)
        hollow._gathered = gathered  # type: ignore[attr-defined]
        return hollow

    def again(self, x: Any) -> Any:
        """What was kept, with its value."""
        if type(x) is not Tensor or "_gathered" not in x.__dict__:
            return x
        k, p, version = x.__dict__["_gathered"]
        if p._version != version:
            raise overwritten(f"op {self.expr.type}", f"input {p.describe()}", p._written_by)
        source, target = self.sources[k], self.wanted[k]
        assert source is not None
        assert target is not None
        return new_tensor(Ahead.of(self.placement.world).whole(p, source, target, back=True), x._meta)


def local_part(x: Tensor) -> Tensor:
    """This rank's part of a tensor as a tensor of this process."""
    local = new_tensor(x._value, x._meta.local, x._lod)
    if x._meta.tracked:
        local._memory = x._memory
    return local
