"""Plain calls: those of which nobody but autograd takes note, made by oprack's generated code.

`torch.ops.oprack.<op>` and `oprack_torch.ops.<op>` look for one by the dtypes and attributes of a call, before they ask
for more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from oprack.bridge import BridgedOp, Gradient, gradient_of, run
from oprack.eager_tensor import Tensor
from oprack.interpreter.current import current_or_none
from oprack.interpreter.modes import current_mode
from oprack.interpreter.op_expr import OpExpr, attr_key
from oprack.runtime.plan.codegen import generated_function
from torch.autograd import forward_ad

from oprack_torch.arrays import METAS, abstract_of, array_of, from_torch, to_torch, torch_of
from oprack_torch.draws import draws

DIRECT: set[int] = set()
"""Sets of dispatch keys, as numbers, behind whose autograd there is the CPU alone."""


class Registered(Protocol):
    """What modules below `library` know of an op of torch, which is a TorchOp there."""

    name: str
    type: str
    in_place: dict[str, str]
    overload: Any
    with_lod: Any
    may_be_plain: bool
    plain_calls: Any

    @property
    def op(self) -> BridgedOp: ...
    def apply(self, expr: OpExpr, items: Sequence[Any]) -> Sequence[Any]: ...
    def expression(self, args: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[OpExpr, list[Any]]: ...
    def returned(self, expr: OpExpr, flat: Sequence[Any]) -> Any: ...


class PlainCall:
    """A call that was made before with tensors of these dtypes: what is needed to make it again.

    Args:
        op: The op.
        expr: The call.
        tensors: Its tensors.
        results: What it gave.

    Attributes:
        call: oprack's generated function; None where there is none yet.
        one: Whether the result is one tensor, the only output.
    """

    def __init__(
        self, op: Registered, expr: OpExpr, tensors: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
    ) -> None:
        self.op, self.expr = op, expr
        self.metas = [METAS[t.dtype] for t in tensors]
        self.call = expr.restricted(current_mode().rules).calls.get(tuple(self.metas))
        self.one = len(op.op.outputs) == 1 and len(results) == 1 and not op.op.outputs[0].listed
        self._gradients: dict[tuple[bool, ...], Gradient] = {}
        self._abstract = [abstract_of(t) for t in tensors], [abstract_of(y) for y in results]

    def gradient(self, wanted: tuple[bool, ...]) -> Gradient:
        """The gradient of the call.

        Args:
            wanted: For each tensor, whether its gradient is.
        """
        found = self._gradients.get(wanted)
        if found is None:
            wrt = [i for i, yes in enumerate(wanted[1:]) if yes]
            found = self._gradients[wanted] = gradient_of(self.expr, *self._abstract, wrt)
        return found

    def arguments(self, tensors: Any) -> list[Any]:
        """oprack's tensors on the memory of torch's."""
        found = []
        for t, meta in zip(tensors, self.metas, strict=False):
            x = Tensor()
            try:
                x._value = t.detach().numpy() if t.requires_grad else t.numpy()
            except RuntimeError:  # a conjugated or negated view
                x._value = array_of(t)
            x._meta, x._node = meta, None
            found.append(x)
        return found

    def formed(self, made: Any) -> Any:
        """Results as the schema has them."""
        return made if self.one else self.op.returned(self.expr, made)

    def shown(self, made: Any) -> Any:
        """Results as functions of oprack.functional return them."""
        return made if self.one else self.op.op.shown(self.op.op.formed(self.expr, made))


def plain_call(op: Registered, expr: OpExpr, tensors: Sequence[Any], results: Sequence[Any]) -> PlainCall | None:
    """What makes a call again that was just made.

    Args:
        op: The op.
        expr: The call.
        tensors: Its tensors, of torch.
        results: Its results, of torch; None for those that a kernel left out.

    Returns:
        It; None where calls of these dtypes differ, or have to be made by torch.
    """
    if op.in_place or not tensors or draws(expr) or any(o.slot.duplicable for o in op.op.outputs):
        return None
    if any(t is None or t.dtype not in METAS or t.dtype is torch.bfloat16 for t in (*tensors, *results)):
        return None
    return PlainCall(op, expr, tensors, results)


class RecordedPlain(torch.autograd.function._SingleLevelFunction):  # no transform of torch.func is there
    """A plain call that is recorded: its gradient is computed by generated code as well, unless that is recorded."""

    @staticmethod
    def forward(ctx: Any, plain: PlainCall, *tensors: torch.Tensor) -> Any:
        args = plain.arguments(tensors)
        made = plain.call(*args)  # type: ignore[misc]
        output = [torch_of(y._value, args) for y in made]
        gradient = plain.gradient(ctx.needs_input_grad)
        ctx.plain, ctx.gradient = plain, gradient
        if len(output) > 1:
            ctx.set_materialize_grads(False)
            if len(gradient.outputs) < len(output):
                ctx.mark_non_differentiable(*[y for j, y in enumerate(output) if j not in gradient.outputs])
            ctx.results = [(y.shape, y.dtype) for y in output]
        ctx.save_for_backward(*[(tensors if side == "in" else output)[i] for side, i, _ in gradient.saved])
        return output[0] if plain.one else tuple(output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        gradient, plain = ctx.gradient, ctx.plain
        recorded = torch.is_grad_enabled()
        saved: Any = ctx.saved_tensors
        given = [grads[j] for j in gradient.outputs]
        if recorded:
            call, zeros = plain.op.apply, lambda j: torch.zeros(ctx.results[j][0], dtype=ctx.results[j][1])
        else:
            call, zeros = run, lambda j: from_torch(torch.zeros(ctx.results[j][0], dtype=ctx.results[j][1]))
            saved, given = [from_torch(t) for t in saved], [None if g is None else from_torch(g) for g in given]
            owned = [x for x in (*saved, *given) if x is not None]
        found = gradient(saved, given, call, zeros)
        by_position: list[Any] = [None] * len(plain.metas)
        for i, g in zip(gradient.wrt, found, strict=True):
            if g is not None:
                by_position[i] = g if recorded else to_torch(g, owned)
        return (None, *[_real(g, meta) for g, meta in zip(by_position, plain.metas, strict=True)])


def _real(g: Any, meta: Any) -> Any:
    return g if g is None or meta.dtype.kind == "c" else real_part(g, torch.float64)


def real_part(g: Any, dtype: torch.dtype) -> Any:
    """The gradient of a real argument, which can't move along the imaginary axis."""
    return g.real if g is not None and g.is_complex() and not dtype.is_complex else g


def alone(tensors: tuple[Any, ...]) -> bool:
    """Whether nobody but autograd would look at a call: no mode, transform or subclass of torch."""
    if (
        torch._C._len_torch_dispatch_stack()
        or torch._C._is_torch_function_mode_enabled()
        or torch._C._are_functorch_transforms_active()
        or torch._C._is_any_autocast_enabled()
        or forward_ad._current_level >= 0
    ):
        return False
    for t in tensors:
        kind = t.__class__
        if (kind is not torch.Tensor and kind is not torch.nn.Parameter) or not t.is_cpu:
            return False
    return True


def call_plain(plain: PlainCall, tensors: tuple[torch.Tensor, ...]) -> Any:
    """Make a plain call, without gradient."""
    args = plain.arguments(tensors)
    made = plain.call(*args)  # type: ignore[misc]
    if plain.one:
        return torch_of(made[0]._value, args)
    return [torch_of(y._value, args) for y in made]


def with_plain_calls(
    op: Registered, otherwise: Callable[..., Any], kernel: bool, names: dict[str, Any] | None = None, before: str = ""
) -> Callable[..., Any]:
    """Python code for an op that looks for a plain call of these dtypes, and only then for more.

    Args:
        op: The op.
        otherwise: Makes all other calls, from the values of the inputs in the order of the signature, the attributes,
            and the key by which a plain call would be found; None: there is none. For a kernel, from dispatch keys
            before these.
        kernel: Whether it is a kernel of torch's dispatcher that gets dispatch keys, and returns what the schema says;
            else it is a function that is called as in oprack.functional, and returns the same.
        names: Objects that `before` uses, by name.
        before: Source of what comes first; it reads `_values` and `_attrs`.

    Returns:
        The function.
    """
    parameters = [(p.name, p.slot.dispensable) for p in op.op.signature.parameters if p.slot is not None]
    heads = [f"{n}=None" if optional else n for n, optional in parameters]
    values = f"({''.join(f'{n}, ' for n, _ in parameters)})"
    keys = ["_keys"] if kernel else []
    lines = [f"def {op.name}({', '.join([*keys, *heads, '**_attrs'])}):"]
    lines += [*before.replace("_values", values).split("\n"), "    _key = None"]
    if op.may_be_plain:
        lines += _looked_up(op, parameters, kernel)
    lines += [f"    return _otherwise({', '.join([*keys, values])}, _attrs, _key)"]
    known = {
        "_alone": alone,
        "_attr_key": attr_key,
        "_call": call_plain,
        "_direct": DIRECT,
        "_forward": forward_ad,
        "_grad_enabled": torch.is_grad_enabled,
        "_mode": current_or_none,
        "_otherwise": otherwise,
        "_Recorded": RecordedPlain,
        "_table": op.plain_calls,
        "_transformed": torch._C._are_functorch_transforms_active,
        "__name__": __name__,
        **(names or {}),
    }
    return generated_function("\n".join(lines) + "\n", op.name, f"oprack_torch.ops.{op.name}", known)


def _looked_up(op: Registered, parameters: list[tuple[str, bool]], kernel: bool) -> list[str]:
    """The part that looks for a plain call, and makes it."""
    dtypes = ", ".join(f"None if {n} is None else {n}.dtype" if o else f"{n}.dtype" for n, o in parameters)
    wants = [f"({n} is not None and {n}.requires_grad)" if o else f"{n}.requires_grad" for n, o in parameters]
    by_slot = {p.slot.name: p.name for p in op.op.signature.parameters if p.slot is not None}
    given = f"({''.join(f'{by_slot[s]}, ' for s in op.op.info.proto.inputs)})"  # as expressions have them
    if any(optional for _, optional in parameters):
        given = f"tuple([_t for _t in {given} if _t is not None])"
    form = "formed" if kernel else "shown"
    if kernel:
        guard = "_keys.raw_repr() in _direct and _forward._current_level < 0 and not _transformed()"
    else:
        guard = "_alone(_given)"
    return [
        "    try:",
        f"        _key = (_mode(), {dtypes}, *_attr_key(_attrs)) if _attrs else (_mode(), {dtypes})",
        "        _plain = _table[_key]",
        "    except (AttributeError, TypeError):",
        "        _key = _plain = None",
        "    if _plain:",
        f"        _given = {given}",
        f"        if {guard}:",
        f"            if _grad_enabled() and ({' or '.join(wants)}):",
        "                _y = _Recorded.apply(_plain, *_given)",
        "            else:",
        "                _y = _call(_plain, _given)",
        f"            return _y if _plain.one else _plain.{form}(_y)",
        "    if _plain is not None:",
        "        _key = None",
    ]
