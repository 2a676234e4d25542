"""Ops of oprack as ops of torch: schema, kernel, fake tensors and gradient of each, registered on its first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any

import torch
from oprack.bridge import Abstract, BridgedOp, Gradient, bridged_op, gradient_of, infer_abstract, run
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import NotDifferentiableError, UnimplementedError, UnknownOpError
from oprack.interpreter.op_expr import OpExpr
from oprack_torch.arrays import DTYPES, abstract_of, from_torch, to_torch
from oprack_torch.dims import of_torch
from oprack_torch.schema import schema_of
from torch._C._functorch import TransformType
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

LIBRARY = torch.library.Library("oprack", "FRAGMENT")
_ops: dict[str, TorchOp] = {}
_being_registered: set[str] = set()
_lock = RLock()


class TorchOp:
    """An op as torch has it.

    Args:
        name: The op type, with "_" behind it for the form that writes to its inputs.

    Attributes:
        name: The name in torch.ops.oprack.
        type: The op.
        in_place: Input slot -> output slot that is written to it.
        overload: What torch calls.
    """

    def __init__(self, name: str, op: BridgedOp, in_place: bool) -> None:
        self.name, self.type = name, op.type
        self.in_place = dict(op.info.inplace) if in_place else {}
        self._tensors = [p.name for p in op.signature.parameters if p.slot is not None]
        tags = [torch.Tag.pt2_compliant_tag]
        if "seed" in op.info.proto.attrs:  # two equal calls are two draws
            tags.append(torch.Tag.nondeterministic_seeded)
        LIBRARY.define(schema_of(op, in_place), tags=tags)
        # a call without tensors has no place of its own, and runs on the CPU
        placed = any(p.slot is not None and not p.slot.dispensable for p in op.signature.parameters)
        LIBRARY.impl(name, self.compute, "CPU" if placed else "CompositeExplicitAutograd")
        LIBRARY.impl(name, self.record, "Autograd", with_keyset=True)
        torch.library.register_fake(f"oprack::{name}", self.fake, lib=LIBRARY)
        if not in_place:
            torch.library.register_vmap(f"oprack::{name}", self.over_batch, lib=LIBRARY)
        self.overload: Any = getattr(_namespace_get(name), "default")

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

    def called(self, expr: OpExpr, tensors: Sequence[Any]) -> list[Any]:
        """Call the op of torch for an expression.

        Args:
            expr: The call.
            tensors: Its tensors.

        Returns:
            What the expression asks for, one after the other.
        """
        values, attrs, counts = self.op.arguments(expr, tensors)
        if self.op.counted:
            attrs["num_outputs"] = counts
        return self.flat(expr, self.overload(**values, **attrs))

    def flat(self, expr: OpExpr, result: Any) -> list[Any]:
        """The results that an expression asks for, one after the other, of what a call by the schema gave."""
        outputs = self.op.outputs
        return self.op.flat(expr, [result] if len(outputs) == 1 else [] if result is None else list(result))

    def _returned(self, expr: OpExpr, flat: Sequence[Any]) -> Any:
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
        arrays = [t._value for t in tensors if t is not None]
        made = [None if y is None else to_torch(y, arrays) for y in run_seeded(expr, tensors)]
        if any(y is None for y in made):
            made = _filled(made, expr, flat)
        for tensor, result in self._written(expr, flat, made):
            tensor.copy_(result)
        return self._returned(expr, made)

    def fake(self, *args: Any, **attrs: Any) -> Any:
        """Results without values, by the op's rules."""
        expr, flat = self.expression(args, attrs)
        device = next((t.device for t in flat if t is not None), torch.device("cpu"))
        made = [_fake(a, device) for a in infer_abstract(expr, [abstract_of(t) for t in flat])]
        return self._returned(expr, made)

    def record(self, keys: Any, *args: Any, **attrs: Any) -> Any:
        """A call that autograd sees."""
        wants = torch.is_grad_enabled() and torch._C._any_requires_grad(*args, **attrs)
        # an op has no rule of tangents, which Function says where a tensor has one
        if not wants and forward_ad._current_level < 0:
            with torch._C._AutoDispatchBelowAutograd():
                return self.overload.redispatch(keys & torch._C._after_autograd_keyset, *args, **attrs)
        if self.in_place:
            raise NotDifferentiableError(
                f"torch.ops.oprack.{self.name} writes to its inputs, so it has no gradient; call it inside "
                f"torch.no_grad(), or call torch.ops.oprack.{self.type}, which returns new tensors"
            )
        expr, flat = self.expression(args, attrs)
        with _one_level():
            made = Recorded.apply(self, expr, *flat)
        return self._returned(expr, made)

    def over_batch(self, info: Any, in_dims: Sequence[Any], *args: Any, **attrs: Any) -> Any:
        """A call for each example of a batch, one after the other: an op of a pack has no rule of batches."""
        rows = [
            self.overload(*[_at(a, d, i) for a, d in zip(args, in_dims, strict=True)], **attrs)
            for i in range(info.batch_size)
        ]
        if isinstance(rows[0], torch.Tensor | list):
            return _stacked(rows)
        pairs = [_stacked(column) for column in zip(*rows, strict=True)]
        return tuple(values for values, _ in pairs), tuple(dims for _, dims in pairs)

    def _written(self, expr: OpExpr, flat: Sequence[Any], made: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Pairs of a tensor that is written to and its new value."""
        if not self.in_place:
            return []
        inputs, outputs = _by_slot(expr.inputs, flat), _by_slot([(s, len(f)) for s, f in expr.outputs], made)
        pairs = [(x, y) for x, y in self.in_place.items() if x in inputs and y in outputs]
        return [pair for x, y in pairs for pair in zip(inputs[x], outputs[y], strict=True)]


_draws: dict[str, bool] = {}
_drawing = RLock()


def run_seeded(expr: OpExpr, tensors: Sequence[Any]) -> Sequence[Any]:
    """Run a call; what it draws follows from `torch.manual_seed`, and does not change what oprack itself draws.

    Args:
        expr: The call.
        tensors: oprack's tensors.

    Returns:
        oprack's tensors.
    """
    known = _draws.get(expr.type)
    if known is False:
        return run(expr, tensors)
    with _drawing:
        before = RANDOM.state()
        if known is None:
            found = run(expr, tensors)
            _draws[expr.type] = RANDOM.state() != before
            if not _draws[expr.type]:
                return found
        try:
            RANDOM.load_state({"seed": int(torch.randint(1 << 62, ())), "draws": {}})
            return run(expr, tensors)
        finally:
            RANDOM.load_state(before)


def draws(op_type: str) -> bool:
    """Whether an op, which was called before, draws random numbers."""
    return _draws.get(op_type, False)


def _by_slot(counts: Sequence[tuple[str, int]], flat: Sequence[Any]) -> dict[str, list[Any]]:
    found, k = {}, 0
    for slot, n in counts:
        found[slot] = list(flat[k : k + n])
        k += n
    return found


def _at(argument: Any, dim: Any, i: int) -> Any:
    """An argument of example i of a batch."""
    if isinstance(argument, list | tuple) and isinstance(dim, list | tuple):
        return [_at(a, d, i) for a, d in zip(argument, dim, strict=True)]
    return argument.select(dim, i) if isinstance(argument, torch.Tensor) and dim is not None else argument


def _stacked(rows: Sequence[Any]) -> tuple[Any, Any]:
    """A result of all examples, and its dim of the batch."""
    if isinstance(rows[0], list | tuple):
        return [torch.stack(list(column)) for column in zip(*rows, strict=True)], [0] * len(rows[0])
    return torch.stack(list(rows)), 0


def _filled(made: Sequence[Any], expr: OpExpr, flat: Sequence[Any]) -> list[Any]:
    """Results with empty ones for what a kernel left out, such as scratch memory of another library: torch wants all."""
    wanted = infer_abstract(expr, [abstract_of(t) for t in flat])
    pairs = zip(made, wanted, strict=True)
    return [
        torch.zeros([max(d, 0) for d in a.shape], dtype=DTYPES[a.dtype]) if y is None and a is not None else y
        for y, a in pairs
    ]


def _fake(a: Abstract | None, device: torch.device) -> torch.Tensor | None:
    if a is None:
        return None
    dims = [torch.library.get_ctx().new_dynamic_size() if type(d) is int and d < 0 else of_torch(d) for d in a.shape]
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
            "an op of oprack was called inside several of torch.func.grad, vjp, jvp, jacrev, jacfwd and hessian; expected "
            "one of them. For gradients of gradients call torch.autograd.grad(..., create_graph=True) twice"
        )
    return enable_single_level_autograd_function()


class Recorded(torch.autograd.function._SingleLevelFunction):
    """A call of an op whose gradient is computed by ops of torch, so that it can be differentiated and traced again."""

    @staticmethod
    def forward(ctx: Any, op: TorchOp, expr: OpExpr, *tensors: Any) -> Any:
        """Call the op, and keep what its gradient reads."""
        with torch._C._AutoDispatchBelowAutograd():
            output = tuple(op.called(expr, tensors))
        wrt = [i for i, wanted in enumerate(ctx.needs_input_grad[2:]) if wanted]
        gradient = gradient_of(expr, [abstract_of(t) for t in tensors], [abstract_of(t) for t in output], wrt)
        ctx.gradient, ctx.count = gradient, len(tensors)
        ctx.dtypes = [tensors[i].dtype for i in gradient.wrt]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[y for j, y in enumerate(output) if y is not None and j not in gradient.outputs])
        sides = {"in": tensors, "out": output}
        ctx.hollow, whole = {}, []
        for k, (side, i, values) in enumerate(gradient.saved):
            t = sides[side][i]
            if values:
                whole.append(t)
            else:
                ctx.hollow[k] = t.shape, t.dtype, t.device
        ctx.save_for_backward(*whole)
        ctx.results = {j: (output[j].shape, output[j].dtype, output[j].device) for j in gradient.outputs}
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        gradient: Gradient = ctx.gradient
        whole = iter(ctx.saved_tensors)
        saved = [_hollow(*ctx.hollow[k]) if k in ctx.hollow else next(whole) for k in range(len(gradient.saved))]

        def zeros(j: int) -> torch.Tensor:
            shape, dtype, device = ctx.results[j]
            return torch.zeros(shape, dtype=dtype, device=device)

        found = gradient(saved, [grads[j] for j in gradient.outputs], _apply, zeros)
        by_position = [None] * ctx.count
        for i, g, dtype in zip(gradient.wrt, found, ctx.dtypes, strict=True):
            by_position[i] = real_part(g, dtype)
        return (None, None, *by_position)


def real_part(g: Any, dtype: torch.dtype) -> Any:
    """The gradient of a real argument, which can't move along the imaginary axis."""
    return g.real if g is not None and g.is_complex() and not dtype.is_complex else g


def _hollow(shape: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of which only the shape is read: it has one element."""
    return torch.zeros((), dtype=dtype, device=device).expand(shape)


def _apply(expr: OpExpr, tensors: Sequence[Any]) -> Sequence[Any]:
    return torch_op(expr.type).called(expr, tensors)


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
