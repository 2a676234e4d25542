"""Strategy for op calls: mutates a recorded call into an example of one op with up to three runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.desc import OpDesc
from oprack.op.desc_rules import infer_op
from oprack.op.proto import OpProto
from oprack.packs.manager import PackManager, default_manager
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray
from oprack.tensor.kinds import kind_of
from oprack.testing.fuzz.examples.calls import OpCall
from oprack.testing.fuzz.examples.example import LAYOUTS, Example
from oprack.testing.fuzz.examples.gradient import with_gradients
from oprack.testing.fuzz.examples.strategies import st
from oprack.testing.fuzz.examples.value_changes import Draw, change_values
from oprack.testing.fuzz.runs.paths import Paths
from oprack.types import COMPLEX, EMPTY_VAR, FLOATS, AttrType, VarType, dtype_enum

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def op_examples(calls: Sequence[OpCall], manager: PackManager | None = None) -> SearchStrategy[Example]:
    """Examples of one op, derived from its recorded calls."""
    manager = manager or default_manager()
    pool: dict[str, list[Any]] = {}
    for call in calls:
        for name, value in call.attrs.items():
            values = pool.setdefault(name, [])
            if value not in values:
                values.append(value)
    paths = Paths(manager)

    # In a closure, since Hypothesis prints the arguments of a strategy.
    @st.composite
    def examples(draw: Draw) -> Example:
        return _example(draw, calls, pool, paths)

    return examples()


def _example(draw: Draw, calls: Sequence[OpCall], pool: Mapping[str, list[Any]], paths: Paths) -> Example:
    manager = paths.manager
    call = calls[draw(st.integers(0, len(calls) - 1))]
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    op, values = _changed(draw, rng, call, pool, manager.op_info(call.type).proto)
    read = list(values)
    runs = [values, *_further_runs(draw, rng, values)]
    parameters = _held(draw, values)
    fed = [n for n in read if isinstance(values[n], LoDTensor)]
    layouts = {n: draw(st.sampled_from(LAYOUTS)) for n in fed if n not in parameters and draw(st.integers(0, 7)) == 7}
    declared = draw(st.sampled_from(["open batch", "open", "static"]))
    example = one_op(op, runs, parameters, declared, manager)
    example.layouts = layouts
    in_place = any(n in values for names in call.outputs.values() for n in names)
    if draw(st.integers(0, 3)) == 3 and not in_place:
        example = with_gradients(example, rng, paths)
    return example


def _changed(
    draw: Draw, rng: np.random.Generator, call: OpCall, pool: Mapping[str, list[Any]], proto: OpProto
) -> tuple[OpDesc, dict[str, Any]]:
    """Mutate a call up to three times; returns the op and the values that it reads."""
    attrs, types = dict(call.attrs), dict(call.attr_types)
    inputs = {s: list(names) for s, names in call.inputs.items()}
    values = dict(call.values)
    for _ in range(draw(st.sampled_from([0, 1, 2, 1, 3, 2]))):
        change = draw(st.sampled_from(_CHANGES))
        if change == "attribute":
            _change_attr(draw, attrs, types, pool, proto)
        elif change == "absent":
            optional = [s for s in inputs if s in proto.inputs and proto.inputs[s].dispensable]
            if optional:
                inputs.pop(draw(st.sampled_from(optional)))
        else:
            values = change_values(draw, rng, values, change)
    read = dict.fromkeys(n for names in inputs.values() for n in names if n != EMPTY_VAR)
    return OpDesc(call.type, inputs, call.outputs, attrs, types), {n: values[n] for n in read}


def _further_runs(draw: Draw, rng: np.random.Generator, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Values of up to two more runs, for which the first run's plan must either work or notice that it does not fit."""
    runs = []
    for _ in range(draw(st.integers(0, 2))):
        changed = dict(values)
        for _ in range(draw(st.integers(1, 2))):
            changed = change_values(draw, rng, changed, draw(st.sampled_from(_RUN_CHANGES)))
        runs.append(changed)
    return runs


def _held(draw: Draw, values: Mapping[str, Any]) -> list[str]:
    """Choose the inputs that are parameters: those that can't be fed and some others, but no sequences."""
    fed = [n for n, v in values.items() if isinstance(v, LoDTensor)]
    constant = draw(st.sampled_from(["none", "all but the first", "some"]))
    held = [n for n in values if n not in fed]
    if constant == "all but the first":
        held += fed[1:]
    elif constant == "some":
        held += [n for n in fed if draw(st.booleans())]
    return [n for n in held if not (isinstance(values[n], LoDTensor) and values[n].lod)]


_CHANGES = (
    *("sizes", "batch", "dim", "fill", "odd", "attribute", "dtype", "lod", "rank", "absent", "dtypes"),
    *("sizes", "odd", "attribute", "dtype", "batch", "sizes", "batch", "sizes"),
)
_RUN_CHANGES = ("batch", "sizes", "dim", "fill", "odd", "lod", "dtype")


def one_op(op: OpDesc, runs: list[dict[str, Any]], held: Sequence[str], declared: str, manager: PackManager) -> Example:
    """An example of one op; `held` lists the inputs that are parameters, `declared` is as in `declare`."""
    program = Program()
    block = program.global_block()
    for name, value in runs[0].items():
        declare(block, name, value, name in held, declared)
    for name in op.output_arg_names():
        if name != EMPTY_VAR and not block.has_var(name):
            block.create_var(name)
    block.append_op(op)
    try:
        infer_op(op, block, manager.op_info(op.type))
    except Exception:  # every path must raise the same error when it runs, but nobody writes dims that an op refuses
        declared = "open"
    for name, value in runs[0].items():  # again, since infer_op changed the inputs that the op overwrites in place
        declare(block, name, value, name in held, declared)
    _declare_gradients(op, block, runs[0])
    outputs = manager.op_info(op.type).proto.outputs
    fetch = [
        n
        for s, names in op.outputs.items()
        for n in names
        if n != EMPTY_VAR and s in outputs and not outputs[s].intermediate
    ]
    fed = [{n: v for n, v in run.items() if n not in held} for run in runs]
    params = {n: runs[0][n] for n in held}
    return Example(program, params, fed, list(dict.fromkeys(fetch)), label=f"op {op.type}")


def _declare_gradients(op: OpDesc, block: Any, values: Mapping[str, Any]) -> None:
    """A gradient that is left without a dtype has that of a variable of the forward op, which a call need not have."""
    dtype = next((v.dtype for v in values.values() if getattr(v, "dtype", "") in FLOATS | COMPLEX), None)
    for name in itertools.chain.from_iterable(names for s, names in op.outputs.items() if s.endswith("@GRAD")):
        if name != EMPTY_VAR and block.var(name).dtype is None and dtype is not None:
            block.var(name).dtype = dtype_enum(dtype)


def declare(block: Any, name: str, value: Any, persistable: bool, declared: str) -> None:
    """Declare a variable for a value; by `declared`, dims are known ("static"), or the first ("open batch") or all
    ("open") are -1.
    """
    if isinstance(value, LoDTensorArray):
        dtype = next((t.dtype for t in value if t is not None), None)
        block.create_var(name, type=VarType.LOD_TENSOR_ARRAY, dtype=dtype, persistable=True)
        return
    dims = list(value.shape)
    if not persistable:
        count = {"static": 0, "open batch": 1}.get(declared, len(dims))
        dims = [-1] * min(count, len(dims)) + dims[count:]
    lod_level = len(getattr(value, "lod", []))
    held = persistable or not isinstance(value, LoDTensor)
    block.create_var(name, type=kind_of(value), dtype=value.dtype, shape=dims, lod_level=lod_level, persistable=held)


# Changes of attributes ------------------------------------------------------------------------------------------------
def _change_attr(
    draw: Draw, attrs: dict[str, Any], types: dict[str, AttrType], pool: Mapping[str, list[Any]], proto: Any
) -> None:
    """Change one attribute to a value from another call, a neighbouring value or a simple one."""
    names = [n for n, p in proto.attrs.items() if not p.extra and types.get(n) not in (AttrType.VAR, AttrType.VARS)]
    if not names:
        return
    name = draw(st.sampled_from(names))
    old = attrs.get(name, proto.attrs[name].default)
    choices = [v for v in pool.get(name, ()) if type(v) is type(old)] + _beside(old)
    if choices:
        attrs[name] = draw(st.sampled_from(choices))
        types.setdefault(name, proto.attrs[name].type)


def _beside(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, 1, 2, -1]
    if isinstance(value, float):
        return [0.0, 1.0, -1.0, value * 2, value + 0.5, 1e-5]
    if isinstance(value, list) and value and not isinstance(value[0], str):
        first = value[0]
        return [[v, *value[1:]] for v in _beside(first)] + [
            [first] * len(value),
            [*value[:-1], *_beside(value[-1])[:1]],
        ]
    return []
