"""`oprack_torch.ops.<op>`: every op as a function of torch's tensors, called as in oprack.functional.

Where nothing but a plain call is wanted, the function calls oprack's generated code itself; else torch.ops.oprack.<op>.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from oprack.bridge import BridgedFunctions, Gradient, bridged_ops, gradient_of, run
from oprack.cache import Cache
from oprack.eager_tensor import Tensor
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import OpExpr, attr_key
from oprack.runtime.plan.codegen import generated_function
from torch.autograd import forward_ad

from oprack_torch.arrays import METAS, abstract_of, array_of, dtype_number, from_torch, to_torch, torch_of
from oprack_torch.library import TorchOp, apply, draws, real_part, run_seeded, torch_op
from oprack_torch.sequences import Sequences, offsets_of

_FORMS = 1024
# torch.compile looks here for the names that a generated function reads before it leaves
_compiling = torch.compiler.is_compiling
_functions = BridgedFunctions(__name__, lambda name: _function(name))


def __getattr__(name: str) -> Callable[..., Any]:
    return _functions(name)


def __dir__() -> list[str]:
    return list(bridged_ops())


class PlainCall:
    """A call that was made before with tensors of these dtypes: what is needed to make it again by generated code.

    Args:
        op: The op.
        expr: The call.
        tensors: Its tensors.

    Attributes:
        call: oprack's generated function.
        one: Whether the result is one tensor, the only output.
    """

    def __init__(self, op: TorchOp, expr: OpExpr, tensors: list[torch.Tensor]) -> None:
        self.op, self.expr = op, expr
        self.metas = [METAS[t.dtype] for t in tensors]
        results = run_seeded(expr, [from_torch(t) for t in tensors])
        self.call = expr.calls.get(tuple(self.metas))
        made = [None if y is None else to_torch(y) for y in results]
        self.usable = self.call is not None and None not in made and not draws(expr)
        self.usable = self.usable and not any(y._lod for y in results)
        self.one = len(op.op.outputs) == 1 and len(made) == 1 and not op.op.outputs[0].listed
        self._gradients: dict[tuple[bool, ...], Gradient] = {}
        self._abstract = [abstract_of(t) for t in tensors], [abstract_of(y) for y in made]

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

    def arguments(self, tensors: Any) -> list[Tensor]:
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

    def result(self, made: Any) -> Any:
        """Results as the function returns them."""
        if self.one:
            return made[0]
        return self.op.op.shown(self.op.op.formed(self.expr, made))


class _Plain(torch.autograd.function._SingleLevelFunction):  # no transform of torch.func is there
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
            call, zeros = apply, lambda j: torch.zeros(ctx.results[j][0], dtype=ctx.results[j][1])
        else:
            call, zeros = run, lambda j: from_torch(torch.zeros(ctx.results[j][0], dtype=ctx.results[j][1]))  # type: ignore[assignment]
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


def _alone(tensors: tuple[Any, ...]) -> bool:
    """Whether nobody but autograd looks at a call: no mode, transform or subclass of torch."""
    if (
        torch._C._len_torch_dispatch_stack()
        or torch._C._is_torch_function_mode_enabled()
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    ):
        return False
    for t in tensors:
        kind = t.__class__
        if (kind is not torch.Tensor and kind is not torch.nn.Parameter) or not t.is_cpu:
            return False
    return True


def _has_lod(value: Any) -> bool:
    if isinstance(value, list | tuple) and not isinstance(value, Sequences):
        return any(map(_has_lod, value))
    return isinstance(value, Sequences) or (isinstance(value, torch.Tensor) and value.is_nested)


def _sequences(value: Any) -> Any:
    return Sequences.from_nested(value) if isinstance(value, torch.Tensor) and value.is_nested else value


class OpFunction:
    """What the function of an op calls where it does not know the call yet.

    Args:
        name: Its name in oprack_torch.ops.
    """

    def __init__(self, name: str) -> None:
        self.torch_op = torch_op(name)
        self.table = Cache(_FORMS)
        op = self.torch_op.op
        self.parameters = [p for p in op.signature.parameters if p.slot is not None]
        self.many = any(p.slot.duplicable for p in self.parameters if p.slot is not None)

    def __call__(self, values: tuple[Any, ...], attrs: Mapping[str, Any], key: Any = None) -> Any:
        """Call with one value per input in the order of the signature."""
        op, torch_op = self.torch_op.op, self.torch_op
        named = dict(zip([p.name for p in self.parameters], values, strict=True))
        given, counts = op.plain({n: dtype_number(v) for n, v in attrs.items()})
        if not given.keys() <= op.signature.attrs.keys():
            op.expression(named, given, counts)  # says what is wrong
        if counts is not None:
            given["num_outputs"] = counts
        if any(_has_lod(v) for v in values):
            return self._with_lod(named, {n: v for n, v in given.items() if n != "num_outputs"}, counts)
        if torch_op.in_place:
            return self._written(values, torch_op.overload(*values, **given))
        if not torch.compiler.is_compiling() and key is not None and _alone(tuple(v for v in values if v is not None)):
            expr, flat = op.expression(named, {n: v for n, v in given.items() if n != "num_outputs"}, counts)
            if any(torch_op.levels(expr, flat)):
                return self._with_lod(named, {n: v for n, v in given.items() if n != "num_outputs"}, counts)
            if counts is None and flat and all(t.dtype in METAS and t.dtype is not torch.bfloat16 for t in flat):
                plain = PlainCall(torch_op, expr, [t.detach() for t in flat])
                if plain.usable:
                    self.table[key] = plain
        formed = torch_op.overload(*values, **given)
        return op.shown([formed] if len(op.outputs) == 1 else [] if formed is None else list(formed))

    def _with_lod(self, named: Mapping[str, Any], attrs: Mapping[str, Any], counts: Any) -> Any:
        """A call with Sequences or nested tensors; results with LoD are as the inputs are."""
        values = {n: [_sequences(x) for x in v] if isinstance(v, list | tuple) and not isinstance(v, Sequences)
                  else _sequences(v) for n, v in named.items()}  # fmt: skip
        expr, flat = self.torch_op.op.expression(values, attrs, counts)
        results = self.torch_op.called(expr, flat)
        if any(
            isinstance(x, torch.Tensor) and x.is_nested
            for v in named.values()
            for x in (v if isinstance(v, list) else [v])
        ):
            results = [y.to_nested() if len(offsets_of(y)) == 1 else y for y in results]
        return self.torch_op.op.shown(self.torch_op.op.formed(expr, results))

    def _written(self, values: tuple[Any, ...], rest: Any) -> Any:
        """What a call in place returns: the inputs that it wrote to, in the place of the outputs, and the others."""
        op, others = self.torch_op.op, iter([] if rest is None else [rest] if isinstance(rest, torch.Tensor) else rest)
        by_slot = {p.slot.name: v for p, v in zip(self.parameters, values, strict=True) if p.slot is not None}
        written = {y: by_slot[x] for x, y in self.torch_op.in_place.items()}
        single = len(op.outputs) - len(written) == 1 and isinstance(rest, list)
        others = iter([rest]) if single else others
        formed = [written[o.slot.name] if o.slot.name in written else next(others) for o in op.outputs]
        found = [f for o, f in zip(op.outputs, formed, strict=True) if f is not None and not (o.listed and f == [])]
        return found[0] if len(found) == 1 else tuple(found)


def _function(name: str) -> Callable[..., Any]:
    """Python code for one op: it looks for a plain call of these dtypes, and only then for more."""
    op = OpFunction(name)
    names = [p.name for p in op.parameters]
    heads = [n if not p.slot.dispensable else f"{n}=None" for n, p in zip(names, op.parameters, strict=True) if p.slot]
    values = f"({''.join(f'{n}, ' for n in names)})"
    lines = [
        f"def {name}({', '.join([*heads, '**_attrs'])}):",
        "    if _compiling():",
        f"        return _in_graph({name!r}, {values}, _attrs)",
    ]
    lines += ["    _key = None"]
    if names and not op.many and not op.torch_op.in_place:
        dtypes = ", ".join(
            f"{n}.dtype" if p.slot is not None and not p.slot.dispensable else f"None if {n} is None else {n}.dtype"
            for n, p in zip(names, op.parameters, strict=True)
        )
        optional = [n for n, p in zip(names, op.parameters, strict=True) if p.slot is not None and p.slot.dispensable]
        by_slot = {p.slot.name: n for n, p in zip(names, op.parameters, strict=True) if p.slot is not None}
        in_order = (
            f"({''.join(f'{by_slot[s]}, ' for s in op.torch_op.op.info.proto.inputs)})"  # as expressions have them
        )
        there = f"tuple([_t for _t in {in_order} if _t is not None])" if optional else in_order
        lines += [
            "    try:",
            f"        _key = (_mode(), {dtypes}, *_attr_key(_attrs)) if _attrs else (_mode(), {dtypes})",
            "        _plain = _table[_key]",
            "    except (AttributeError, TypeError):",
            "        _key = _plain = None",
            "    if _plain is not None:",
            f"        _given = {there}",
            "        if _alone(_given):",
            "            if _grad_enabled() and " + _any_grad(names, optional) + ":",
            "                _y = _Recorded.apply(_plain, *_given)",
            "                return _y if _plain.one else _plain.result(_y)",
            "            return _called(_plain, _given)",
        ]
    lines += [f"    return _op({values}, _attrs, _key)"]
    known = {
        "_compiling": _compiling,
        "_mode": current_or_none,
        "_table": op.table,
        "_attr_key": attr_key,
        "_alone": _alone,
        "_grad_enabled": torch.is_grad_enabled,
        "_Recorded": _Plain,
        "_called": _called,
        "_op": op,
        "_in_graph": _in_graph,
        "__name__": __name__,
    }
    found = generated_function("\n".join(lines) + "\n", name, f"oprack_torch.ops.{name}", known)
    op.torch_op.op.signature.describe(found, __name__)
    found.__name__ = found.__qualname__ = name
    found.of = op  # type: ignore[attr-defined]
    return found


@torch.compiler.allow_in_graph
def _in_graph(name: str, values: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """A call while torch.compile reads Python: it notes this function, and looks no further."""
    return __getattr__(name).of(values, attrs)  # type: ignore[attr-defined]


def _any_grad(names: list[str], optional: list[str]) -> str:
    texts = [f"({n} is not None and {n}.requires_grad)" if n in optional else f"{n}.requires_grad" for n in names]
    return f"({' or '.join(texts)})"


def _called(plain: PlainCall, tensors: tuple[torch.Tensor, ...]) -> Any:
    """Make a plain call, without gradient."""
    args = plain.arguments(tensors)
    made = plain.call(*args)  # type: ignore[misc]
    if plain.one:
        return torch_of(made[0]._value, args)
    return plain.result([torch_of(y._value, args) for y in made])
