"""Ops of oprack as ops of torch: schema, kernel, fake tensors and gradient of each, registered on its first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import RLock
from typing import Any

import torch
from oprack.bridge import (
    Abstract,
    BridgedOp,
    Gradient,
    bridged_op,
    gradient_of,
    infer_abstract,
    require_known,
)
from oprack.cache import Cache
from oprack.errors import InvalidLoDError, NotDifferentiableError, UnimplementedError, UnknownOpError
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import OpExpr, attr_key
from oprack.packs.changes import on_change
from torch._C._functorch import TransformType
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from oprack_torch.arrays import DTYPES, abstract_of, from_torch, to_torch
from oprack_torch.dims import of_torch
from oprack_torch.draws import run_seeded
from oprack_torch.plain import DIRECT, PlainCall, plain_call, real_part, with_plain_calls
from oprack_torch.schema import LOD, schema_of
from oprack_torch.sequences import Item, Sequences, joined, lod_of, offsets_of, values_of
from oprack_torch.transforms import casting, over_batch

LIBRARY = torch.library.Library("oprack", "FRAGMENT")
_ops: dict[str, TorchOp] = {}
_being_registered: set[str] = set()
_lock = RLock()
_levels = Cache(4096)
_FORMS = 1024
_DIRECT = (torch._C.DispatchKey.CPU, torch._C.DispatchKey.ADInplaceOrView)


class TorchOp:
    """An op as torch has it.

    Args:
        name: The op type, with "_" behind it for the form that writes to its inputs.

    Attributes:
        name: The name in torch.ops.oprack.
        type: The op.
        in_place: Input slot -> output slot that is written to it.
        overload: What torch calls.
        may_be_plain: Whether there may be plain calls: no input is a list or written to.
        plain_calls: Plain calls by the mode, the dtypes of the inputs and the attributes; False where there is none.
    """

    def __init__(self, name: str, op: BridgedOp, in_place: bool) -> None:
        self.name, self.type = name, op.type
        self.in_place = dict(op.info.inplace) if in_place else {}
        slots = [p.slot for p in op.signature.parameters if p.slot is not None]
        self._tensors = [p.name for p in op.signature.parameters if p.slot is not None]
        self.may_be_plain = bool(slots) and not in_place and not any(s.duplicable for s in slots)
        self.plain_calls, self._made = Cache(_FORMS), Cache(_FORMS)
        tags = [torch.Tag.pt2_compliant_tag]
        if "seed" in op.info.proto.attrs:  # two equal calls are two draws
            tags.append(torch.Tag.nondeterministic_seeded)
        # a call without tensors has no place of its own, and runs on the CPU
        placed = any(not s.dispensable for s in slots)
        record = with_plain_calls(self, self.record, kernel=True)
        for lod in (False,) if in_place else (False, True):
            LIBRARY.define(schema_of(op, in_place, lod), tags=tags)
            full = f"{name}.{LOD}" if lod else name
            LIBRARY.impl(
                full, self.compute_lod if lod else self.compute, "CPU" if placed else "CompositeExplicitAutograd"
            )
            LIBRARY.impl(full, self.record_lod if lod else record, "Autograd", with_keyset=True)
            LIBRARY.impl(full, partial(casting, self, lod), "AutocastCPU")
            torch.library.register_fake(f"oprack::{full}", self.fake_lod if lod else self.fake, lib=LIBRARY)
        if not in_place:
            torch.library.register_vmap(f"oprack::{name}", partial(over_batch, self), lib=LIBRARY)
        packet = _namespace_get(name)
        self.overload: Any = packet.default
        self.with_lod: Any = None if in_place else getattr(packet, LOD)

    @property
    def op(self) -> BridgedOp:
        """The op as the installed packs have it now."""
        return bridged_op(self.type)

    def expression(self, args: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[OpExpr, list[Any]]:
        """The expression of a call and its tensors one after the other, from arguments by the schema."""
        given = {**dict(zip(self._tensors, args, strict=False)), **attrs}
        values = {n: given.pop(n, None) for n in self._tensors}
        counts = given.pop("num_outputs", None)
        return self.op.expression(values, given, counts)

    def called(self, expr: OpExpr, items: Sequence[Item]) -> list[Item]:
        """Call the op of torch for an expression.

        Args:
            expr: The call.
            items: Its tensors, or Sequences.

        Returns:
            What the expression asks for, one after the other.
        """
        tensors = [values_of(x) for x in items]
        values, attrs, counts = self.op.arguments(expr, tensors)
        if self.op.counted:
            attrs["num_outputs"] = counts
        levels = [len(offsets_of(x)) for x in items]
        made = self.levels(expr, items)
        if not any(levels) and not any(made):
            return self.flat(expr, self.overload(**values, **attrs))
        offsets = [o for x in items for o in offsets_of(x)]
        *result, lods = self.with_lod(**values, **attrs, levels=levels, offsets=offsets)
        return joined(self.flat(expr, result[0] if len(result) == 1 else result), made, lods)

    @staticmethod
    def apply(expr: OpExpr, items: Sequence[Item]) -> Sequence[Item]:
        """Call the op of torch that an expression names."""
        return torch_op(expr.type).called(expr, items)

    def levels(self, expr: OpExpr, items: Sequence[Item]) -> list[int]:
        """How many LoD levels each result of a call has, by the op's rules."""
        kinds = tuple(None if x is None else (values_of(x).dtype, len(offsets_of(x))) for x in items)
        found: list[int] | None = _levels[expr, kinds]
        if found is None:
            abstract = [_abstract(x) for x in items]
            found = [0 if a is None else a.lod_level for a in infer_abstract(expr, abstract)]
            _levels[expr, kinds] = found
        return found

    def flat(self, expr: OpExpr, result: Any) -> list[Any]:
        """The results that an expression asks for, one after the other, of what a call by the schema gave."""
        outputs = self.op.outputs
        return self.op.flat(expr, [result] if len(outputs) == 1 else [] if result is None else list(result))

    def returned(self, expr: OpExpr, flat: Sequence[Any]) -> Any:
        """Results as the schema has them."""
        formed = self.op.formed(expr, flat)
        written = self.in_place.values()
        kept = [f for o, f in zip(self.op.outputs, formed, strict=True) if o.slot.name not in written]
        return kept[0] if len(kept) == 1 else tuple(kept) if kept else None

    # What torch calls -------------------------------------------------------------------------------------------------
    def compute(self, *args: Any, **attrs: Any) -> Any:
        """The kernel, on the CPU."""
        expr, flat = self.expression(args, attrs)
        tensors = [None if t is None else from_torch(t) for t in flat]
        given = [t for t in tensors if t is not None]
        results = run_seeded(expr, tensors)
        made = [None if y is None else to_torch(y, given) for y in results]
        if self.may_be_plain and not any(y is not None and y._lod for y in results):
            self._keep_plain(expr, flat, made)
        if any(y is None for y in made):
            made = _filled(made, expr, flat)
        for tensor, result in self._written(expr, flat, made):
            tensor.copy_(result)
        return self.returned(expr, made)

    def compute_lod(self, *args: Any, levels: Sequence[int], offsets: Sequence[Any], **attrs: Any) -> Any:
        """The kernel, on the CPU, with LoD."""
        expr, flat = self.expression(args, attrs)
        items = joined(flat, levels, offsets)
        tensors = [None if x is None else from_torch(values_of(x), lod_of(x)) for x in items]
        given = [t for t in tensors if t is not None]
        results = run_seeded(expr, tensors)
        made = [None if y is None else to_torch(y, given) for y in results]
        lods = []
        for y, level in zip(results, self.levels(expr, items), strict=True):
            lod = [] if y is None else list(y._lod)
            if y is not None and len(lod) != level:
                raise InvalidLoDError(
                    f"op {self.type}: a result has {len(lod)} LoD levels, but its shape rule says {level} for inputs "
                    f"of {list(levels)} levels; torch has to know their number before"
                )
            lods += [torch.tensor(list(o), dtype=torch.int64) for o in lod]
        if any(y is None for y in made):
            made = _filled(made, expr, items)
        return self._with_lods(self.returned(expr, made), lods)

    def _with_lods(self, returned: Any, lods: Sequence[Any]) -> Any:
        parts = () if returned is None else (returned,) if len(self.op.outputs) == 1 else returned
        return (*parts, list(lods)) if parts else list(lods)

    def fake(self, *args: Any, **attrs: Any) -> Any:
        """Results without values, by the op's rules."""
        expr, flat = self.expression(args, attrs)
        device = next((t.device for t in flat if t is not None), torch.device("cpu"))
        results = infer_abstract(expr, [abstract_of(t) for t in flat])
        require_known(expr, results)
        made = [_fake(a, device) for a in results]
        return self.returned(expr, made)

    def fake_lod(self, *args: Any, levels: Sequence[int], offsets: Sequence[Any], **attrs: Any) -> Any:
        """Results and their offsets without values, by the op's rules."""
        expr, flat = self.expression(args, attrs)
        results = infer_abstract(expr, [_abstract(x) for x in joined(flat, levels, offsets)])
        require_known(expr, results)
        lods = [_fake(Abstract((-1,), "int64"), torch.device("cpu")) for a in results if a for _ in range(a.lod_level)]
        return self._with_lods(self.returned(expr, [_fake(a, torch.device("cpu")) for a in results]), lods)

    def record(self, keys: Any, values: tuple[Any, ...], attrs: Mapping[str, Any], key: Any) -> Any:
        """A call that autograd sees, and that is no plain call yet."""
        below = keys & torch._C._after_autograd_keyset
        if not _is_recorded(values, attrs):
            with torch._C._AutoDispatchBelowAutograd():
                found = self.overload.redispatch(below, *values, **attrs)
        elif self.in_place:
            raise NotDifferentiableError(
                f"torch.ops.oprack.{self.name} writes to its inputs, so it has no gradient; call it inside "
                f"torch.no_grad(), or call torch.ops.oprack.{self.type}, which returns new tensors"
            )
        else:
            expr, flat = self.expression(values, attrs)
            with _one_level():
                made = Recorded.apply(self, expr, (0,) * len(flat), *flat)
            found = self.returned(expr, made)
        if key is not None and below.highestPriorityTypeId() in _DIRECT:
            DIRECT.add(keys.raw_repr())
            self.remember(key, *self.expression(values, attrs))
        return found

    def remember(self, key: Any, expr: OpExpr, flat: Sequence[Any]) -> None:
        """Have a call that was made found as a plain one by a key, or noted as none."""
        found = self._made[_kind(expr, flat)]
        if found is not None:
            self.plain_calls[key] = found

    def forget(self) -> None:
        """Drop all plain calls: packs have changed."""
        self.plain_calls.clear()
        self._made.clear()

    def _keep_plain(self, expr: OpExpr, flat: Sequence[Any], made: Sequence[Any]) -> None:
        kind = _kind(expr, flat)
        if self._made[kind] is None:
            found: PlainCall | bool = plain_call(self, expr, flat, made) or False
            if not isinstance(found, PlainCall) or found.call is not None:  # else it comes with a later call
                self._made[kind] = found

    def record_lod(self, keys: Any, *args: Any, levels: Sequence[int], offsets: Sequence[Any], **attrs: Any) -> Any:
        """A call with LoD that autograd sees."""
        if not _is_recorded(args, attrs):
            with torch._C._AutoDispatchBelowAutograd():
                rest = {**attrs, "levels": levels, "offsets": offsets}
                return self.with_lod.redispatch(keys & torch._C._after_autograd_keyset, *args, **rest)
        expr, flat = self.expression(args, attrs)
        with _one_level():
            made = Recorded.apply(self, expr, tuple(levels), *flat, *offsets)
        count = sum(len(flags) for _, flags in expr.outputs)
        return self._with_lods(self.returned(expr, made[:count]), made[count:])

    def _written(self, expr: OpExpr, flat: Sequence[Any], made: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Pairs of a tensor that is written to and its new value."""
        if not self.in_place:
            return []
        inputs, outputs = _by_slot(expr.inputs, flat), _by_slot([(s, len(f)) for s, f in expr.outputs], made)
        pairs = [(x, y) for x, y in self.in_place.items() if x in inputs and y in outputs]
        return [pair for x, y in pairs for pair in zip(inputs[x], outputs[y], strict=True)]


def _by_slot(counts: Sequence[tuple[str, int]], flat: Sequence[Any]) -> dict[str, list[Any]]:
    found, k = {}, 0
    for slot, n in counts:
        found[slot] = list(flat[k : k + n])
        k += n
    return found


def _filled(made: Sequence[Any], expr: OpExpr, items: Sequence[Item]) -> list[Any]:
    """Results with empty ones for what a kernel left out, such as scratch memory: torch wants all."""
    wanted = infer_abstract(expr, [_abstract(x) for x in items])
    pairs = zip(made, wanted, strict=True)
    return [
        torch.zeros([max(d, 0) for d in a.shape or (0,)], dtype=DTYPES[a.dtype or "float32"]) if y is None and a else y
        for y, a in pairs
    ]


def _fake(a: Abstract | None, device: torch.device) -> torch.Tensor | None:
    if a is None:
        return None
    dims = [
        torch.library.get_ctx().new_dynamic_size() if type(d) is int and d < 0 else of_torch(d) for d in a.shape or ()
    ]
    return torch.empty(dims, dtype=DTYPES[a.dtype], device=device)


def _one_level() -> AbstractContextManager[Any]:
    """Inside torch.func.grad and vjp, whose level the dispatcher has left when it calls a kernel of "Autograd".

    Raises:
        NotDifferentiableError: There are several levels, of which torch would pass over all but one.
    """
    if not torch._C._are_functorch_transforms_active():
        return nullcontext()
    kinds = [level.key() for level in torch._C._functorch.get_interpreter_stack() or ()]
    if sum(kind in (TransformType.Grad, TransformType.Jvp) for kind in kinds) > 1:
        raise NotDifferentiableError(
            "an op of oprack was called inside several of torch.func.grad, vjp, jvp, jacrev, jacfwd and hessian; "
            "expected one of them. For gradients of gradients call torch.autograd.grad(..., create_graph=True) twice"
        )
    return enable_single_level_autograd_function()


class Recorded(torch.autograd.function._SingleLevelFunction):
    """A call of an op whose gradient is computed by ops of torch, so that it can be differentiated and traced again."""

    @staticmethod
    def forward(ctx: Any, op: TorchOp, expr: OpExpr, levels: tuple[int, ...], *flat: Any) -> Any:
        """Call the op, and keep what its gradient reads."""
        items = joined(flat[: len(levels)], levels, flat[len(levels) :])
        with torch._C._AutoDispatchBelowAutograd():
            results = op.called(expr, items)
        wrt = [i for i, wanted in enumerate(ctx.needs_input_grad[3 : 3 + len(levels)]) if wanted]
        gradient = gradient_of(expr, [_abstract(x) for x in items], [_abstract(y) for y in results], wrt)
        ctx.gradient, ctx.count = gradient, len(flat)
        ctx.dtypes = [values_of(items[i]).dtype for i in gradient.wrt]
        ctx.set_materialize_grads(False)
        values, lods = [values_of(y) for y in results], [o for y in results for o in offsets_of(y)]
        closed = [y for j, y in enumerate(values) if y is not None and j not in gradient.outputs]
        ctx.mark_non_differentiable(*closed, *lods)
        sides, kept = {"in": items, "out": results}, _Kept(ctx)
        for side, i, whole in gradient.saved:
            kept.keep(sides[side][i], whole)
        for j in gradient.outputs:
            kept.keep(results[j], False)
        kept.done()
        return (*values, *lods)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of the tensors."""
        gradient: Gradient = ctx.gradient
        kept = _Kept.back(ctx)
        saved, like = kept[: len(gradient.saved)], dict(zip(gradient.outputs, kept[len(gradient.saved) :], strict=True))
        arrived = [None if grads[j] is None else _like(grads[j], like[j]) for j in gradient.outputs]
        found = gradient(saved, arrived, apply, lambda j: _like(torch.zeros_like(values_of(like[j])), like[j]))
        by_position: list[Any] = [None] * ctx.count
        for i, g, dtype in zip(gradient.wrt, found, ctx.dtypes, strict=True):
            by_position[i] = real_part(values_of(g), dtype)
        return (None, None, None, *by_position)


class _Kept:
    """What a recorded call keeps: items, of some of which only shape and LoD are read later."""

    def __init__(self, ctx: Any) -> None:
        self._ctx, self._tensors = ctx, list[torch.Tensor]()
        ctx.kept = []

    def keep(self, item: Item, whole: bool) -> None:
        """Keep an item."""
        t, offsets = values_of(item), offsets_of(item)
        self._ctx.kept.append((None if whole else (t.shape, t.dtype, t.device), len(offsets)))
        self._tensors += [*([t] if whole else []), *offsets]

    def done(self) -> None:
        """All was kept."""
        self._ctx.save_for_backward(*self._tensors)

    @staticmethod
    def back(ctx: Any) -> list[Item]:
        """What was kept; a tensor of which only the shape is read has one element."""
        rest, found = iter(ctx.saved_tensors), list[Item]()
        for hollow, level in ctx.kept:
            if hollow is None:
                t = next(rest)
            else:
                t = torch.zeros((), dtype=hollow[1], device=hollow[2]).expand(hollow[0])
            offsets = tuple(next(rest) for _ in range(level))
            found.append(Sequences(t, offsets) if offsets else t)
        return found


def _like(t: torch.Tensor, item: Item) -> Item:
    return Sequences(t, offsets) if (offsets := offsets_of(item)) else t


def _abstract(item: Item) -> Abstract | None:
    return abstract_of(values_of(item), len(offsets_of(item)))


def _is_recorded(args: Any, attrs: Any) -> bool:
    """Whether a call wants gradients, or tangents, for which an op has no rule: Function says so."""
    return (torch.is_grad_enabled() and torch._C._any_requires_grad(*args, **attrs)) or forward_ad._current_level >= 0


apply = TorchOp.apply


def _kind(expr: OpExpr, flat: Sequence[Any]) -> Any:
    """What plain calls depend on; a default that is passed makes the same call."""
    dtypes = tuple([None if t is None else t.dtype for t in flat])
    return current_or_none(), expr.inputs, expr.outputs, attr_key(expr.attrs), dtypes


def _forget() -> None:
    for op in _ops.values():
        op.forget()


on_change(_forget)


def torch_op(name: str) -> TorchOp:
    """An op of torch, registered on first use.

    Args:
        name: The op type, with "_" behind it for the form that writes to its inputs.

    Returns:
        It.

    Raises:
        UnknownOpError: No installed pack brings the op; otherwise as `oprack.op_info`.
        UnimplementedError: torch can't call it.
    """
    found = _ops.get(name)
    if found is None:
        with _lock:
            found = _ops.get(name)
            if found is None:
                _being_registered.add(name)
                try:
                    found = _ops[name] = _registered(name)
                finally:
                    _being_registered.discard(name)
    return found


def _registered(name: str) -> TorchOp:
    try:
        return TorchOp(name, bridged_op(name), False)
    except UnknownOpError:
        if not name.endswith("_"):
            raise
        op = bridged_op(name.removesuffix("_"))
        if not op.info.inplace:
            raise UnimplementedError(
                f"op {op.type} declares no input that it may overwrite, so there is no torch.ops.oprack.{name}; call "
                f"torch.ops.oprack.{op.type}, which returns new tensors"
            ) from None
        return TorchOp(name, op, True)


class _Namespace(torch._ops._OpNamespace):
    """torch.ops.oprack, which registers an op when somebody asks for it."""

    __module__ = torch._ops._OpNamespace.__module__  # compilers look ops up by the name that follows from it

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name not in _ops and name not in _being_registered:
            try:
                torch_op(name)
            except (UnknownOpError, UnimplementedError) as error:
                raise AttributeError(str(error)) from error
        return super().__getattr__(name)


def _namespace_get(name: str) -> Any:
    return torch._ops._OpNamespace.__getattr__(_namespace, name)


_namespace = _Namespace("oprack")
torch.ops.oprack = _namespace
