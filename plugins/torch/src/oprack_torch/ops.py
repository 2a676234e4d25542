"""`oprack_torch.ops.<op>`: every op as a function of torch's tensors, called as in oprack.functional.

Where nothing but a plain call is wanted, the function calls oprack's generated code itself; else torch.ops.oprack.<op>.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from oprack.bridge import BridgedFunctions, bridged_ops

from oprack_torch.arrays import dtype_number
from oprack_torch.library import torch_op
from oprack_torch.plain import alone, with_plain_calls
from oprack_torch.sequences import Sequences, offsets_of

# torch.compile looks here for the names that a generated function reads before it leaves
_compiling = torch.compiler.is_compiling
_functions = BridgedFunctions(__name__, lambda name: _function(name))


def __getattr__(name: str) -> Callable[..., Any]:
    return _functions(name)


def __dir__() -> list[str]:
    return list(bridged_ops())


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
        self.parameters = [p for p in self.torch_op.op.signature.parameters if p.slot is not None]

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
        plain = (
            key is not None and not torch.compiler.is_compiling() and alone(tuple(v for v in values if v is not None))
        )
        if plain:
            expr, flat = op.expression(named, {n: v for n, v in given.items() if n != "num_outputs"}, counts)
            if any(torch_op.levels(expr, flat)):
                return self._with_lod(named, {n: v for n, v in given.items() if n != "num_outputs"}, counts)
        formed = torch_op.overload(*values, **given)
        if plain:
            torch_op.remember(key, expr, flat)
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
    op = OpFunction(name)
    graph = f"    if _compiling():\n        return _in_graph({name!r}, _values, _attrs)"
    names = {"_compiling": _compiling, "_in_graph": _in_graph, "__name__": __name__}
    found = with_plain_calls(op.torch_op, op, kernel=False, names=names, before=graph)
    op.torch_op.op.signature.describe(found, __name__)
    found.__name__ = found.__qualname__ = name
    found.of = op  # type: ignore[attr-defined]
    return found


@torch.compiler.allow_in_graph
def _in_graph(name: str, values: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    """A call while torch.compile reads Python: it notes this function, and looks no further."""
    return __getattr__(name).of(values, attrs)  # type: ignore[attr-defined]
