"""A rack of small ops for tests of the core and of the parts of its package: no installed pack takes part."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import oprack
import pack_site
import pytest
from oprack.kernel import kernel
from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import PackManager, use_manager
from oprack.program import Program
from oprack.tensor import LoDTensor

LAYERS_RACK = EntryPoint("layers_rack", "layers_rack", "oprack.packs")


class Double(OpDef, type="double"):
    """Out = factor * X."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    factor = Attr(2.0, "Factor.").greater_than(0)
    inplace = {"X": "Out"}

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: Any) -> GradOp:
        return GradOp("double_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs)


class DoubleGrad(GradOpDef, type="double_grad"):
    """X@GRAD = factor * Out@GRAD."""

    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")
    factor = Attr(2.0, "Factor.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("Out@GRAD"))


class Pick(OpDef, type="pick"):
    """Out = rows of W at Ids, scaled by the optional Scale."""

    Ids = Input("int64 [n].")
    W = Input("Table [v, d].")
    Scale = Input("One element.", dispensable=True)
    Out = Output("[n, d].")
    expected_kernel_type = dtype_of("W")

    def infer_shape(ctx: Any) -> None:
        ctx.require_rank("W", 2)
        ctx.set_dim("Out", (ctx.dim("Ids")[0], ctx.dim("W")[1]))
        ctx.share_lod("Ids", "Out")

    def infer_var_type(ctx: Any) -> None:
        ctx.set_dtype("Out", ctx.dtype("W"))


class Join(OpDef, type="join"):
    """Out = all X after each other."""

    X = Input("Tensors.", duplicable=True)
    Out = Output("Their rows.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", (sum(d[0] for d in ctx.dims("X")), *ctx.dim("X")[1:]))


class Flat(OpDef, type="flat"):
    """Out = X as one dim, a view."""

    X = Input("Any tensor.")
    Out = Output("[size of X].")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", (int(np.prod(ctx.dim("X"))) if ctx.is_runtime else -1,))


@kernel("double", place=("cpu", "fake"))
def double(X: Any, *, factor: float, out: Any = None, xp: Any) -> Any:
    return xp.multiply(X, X.dtype.type(factor), out=out)


@kernel("double_grad")
def double_grad(Out_grad: Any, *, factor: float) -> Any:
    return Out_grad * Out_grad.dtype.type(factor)


@kernel("pick")
def pick(Ids: Any, W: Any, Scale: Any = None) -> Any:
    rows = W[Ids]
    return rows if Scale is None else rows * Scale


@kernel("join")
def join(X: list[Any]) -> Any:
    return np.concatenate(X)


@kernel("flat", view=True)
def flat(X: Any) -> Any:
    return X.reshape(-1)


@pytest.fixture
def rack() -> Any:
    """A manager with the ops above; the default one while the test runs."""
    manager = PackManager(entry_points=[LAYERS_RACK], environ={})
    for definition in (Double, DoubleGrad, Pick, Join, Flat):
        manager.register_op(definition)
    for function in (double, double_grad, pick, join, flat):
        manager.register_kernel(function)
    with use_manager(manager):
        yield manager


@pytest.fixture
def build(rack: PackManager) -> Callable[..., Program]:
    """build({"x": array}, [(type, inputs, outputs, attrs), ...]) -> Program, shapes inferred."""

    def make(feeds: dict[str, Any], ops: list[tuple[Any, ...]]) -> Program:
        program = Program()
        block = program.global_block()
        for name, value in feeds.items():
            value = value if isinstance(value, LoDTensor) else LoDTensor(np.asarray(value))
            block.create_var(name, dtype=value.dtype, shape=[-1, *value.shape[1:]], lod_level=len(value.lod))
        for type_, inputs, outputs, *attrs in ops:
            for names in outputs.values():
                for name in [names] if isinstance(names, str) else names:
                    if not block.has_var(name):
                        block.create_var(name)
            op = block.append_op(type_, inputs, outputs, attrs[0] if attrs else {})
            infer_op(op, block, rack.op_info(type_))
        return program

    return make


@pytest.fixture
def programs(rack: PackManager) -> Any:
    """(main, startup), being built, with names that start from 0 and the ops of layers_rack."""
    from oprack.layers import program_guard, unique_name

    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        yield main, startup


@pytest.fixture
def pack(monkeypatch):
    """Makes an entry point: pack("a", oprack_ops=lambda register: ...)."""

    def make(name, **hooks):
        module = ModuleType(f"fixture_memory_{name}")
        for hook, function in hooks.items():
            namespace = {"function": function}
            exec(f"def {hook}(register): function(register)", namespace)
            setattr(module, hook, oprack.hookimpl(namespace[hook]))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        dist = SimpleNamespace(name=f"oprack-{name}", version="1.0")
        return SimpleNamespace(name=name, value=module.__name__, dist=dist)

    return make


@pytest.fixture
def good(tmp_path, monkeypatch):
    pack_site.install(tmp_path, "good")
    monkeypatch.syspath_prepend(tmp_path)
    yield pack_site.entry_points(tmp_path)
    for name in [n for n in sys.modules if n.startswith("fixture_good")]:
        del sys.modules[name]
