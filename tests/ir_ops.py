"""Ops for tests of graphs and passes: arithmetic, one with a state, one that draws, one that runs a block."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import oprack
from oprack.kernel import kernel
from oprack.op import REQUIRED, Attr, Input, OpDef, Output, dtype_of
from oprack.packs.manager import PackManager
from oprack.runtime import OperatorBase
from oprack.runtime.prepared import run_block
from oprack.types import AttrType

GENERIC_PASSES = SimpleNamespace(
    name="ir", value="oprack_ir.pack", dist=SimpleNamespace(name="oprack-ir", version="1.0")
)


def like_x(ctx: Any) -> None:
    ctx.set_dim("Out", ctx.dim("X"))
    ctx.share_lod("X", "Out")


class Plus(OpDef, type="plus"):
    """Out = X + Y."""

    X = Input("Any tensor.")
    Y = Input("Shape of X, or one element.")
    Out = Output("As X.")
    Mark = Output("Empty.", dispensable=True)
    infer_shape = like_x


class Twice(OpDef, type="twice"):
    """Out = 2 X."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    inplace = {"X": "Out"}
    infer_shape = like_x


class Times(OpDef, type="times"):
    """Out = X * Y * by."""

    X = Input("Any tensor.")
    Y = Input("Shape of X, or one element.")
    Z = Input("Another factor.", dispensable=True)
    Out = Output("As X.")
    by = Attr(1.0, "A factor.")
    infer_shape = like_x

    def identity(ctx: Any) -> bool:
        return ctx.attr("by") == 0.0  # no identity at all: for tests of who asks


class Copy(OpDef, type="copy"):
    """Out = X."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    Also = Output("As X.", dispensable=True)
    infer_shape = like_x

    def identity(ctx: Any) -> bool:
        return True


class State(OpDef, type="state"):
    """Out = X - S, SOut = S."""

    X = Input("Any tensor.")
    S = Input("Shape of X, or one element.")
    Out = Output("As X.")
    SOut = Output("S as it is.")
    infer_shape = like_x


class Draw(OpDef, type="draw"):
    """Out = X plus random numbers."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    infer_shape = like_x


class Grow(OpDef, type="grow"):
    """Out = X, n times over; its length is not known before it runs."""

    X = Input("Any tensor.")
    Out = Output("Longer.")
    n = Attr(2, "How often.")
    open = Attr(False, "Do not say how long.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: Any) -> None:
        dims = ctx.dim("X")
        known = ctx.is_runtime or not ctx.attr("open")
        ctx.set_dim("Out", (dims[0] * ctx.attr("n") if known else -1, *dims[1:]))


class Repeat(OpDef, type="repeat"):
    """Runs its block a number of times."""

    X = Input("What the block reads.", duplicable=True)
    Out = Output("What it writes.", duplicable=True)
    sub_block = Attr(REQUIRED, "The block.", type=AttrType.BLOCK)
    times = Attr(2, "How often.")

    def infer_shape(ctx: Any) -> None:
        """The block's variables have their shapes."""


class RepeatOp(OperatorBase):
    def run_impl(self, scope: Any, run: Any) -> None:
        for _ in range(self.attrs["times"]):
            run_block(run, self.attrs["sub_block"], scope.new_scope())


@kernel("plus")
def plus(X: Any, Y: Any) -> Any:
    return {"Out": X + Y}


@kernel("twice")
def twice(X: Any) -> Any:
    return X + X


@kernel("times")
def times(X: Any, Y: Any, Z: Any = None, *, by: float) -> Any:
    return X * Y * (1 if Z is None else Z) * X.dtype.type(by)


@kernel("copy")
def copy(X: Any) -> Any:
    return {"Out": X.copy(), "Also": X.copy()}


@kernel("state")
def state(X: Any, S: Any) -> Any:
    return X - S, S.copy()


@kernel("draw")
def draw(X: Any, *, ctx: Any) -> Any:
    return X + ctx.generator(0).standard_normal(X.shape).astype(X.dtype)


@kernel("grow")
def grow(X: Any, *, n: int) -> Any:
    return np.concatenate([X] * n)


def manager_with_passes(monkeypatch: Any, **hooks: Callable[[Any], None]) -> PackManager:
    """A manager with the passes that know no op, a pack for each hook `oprack_passes`, and the ops of this module."""
    entry_points = [GENERIC_PASSES]
    for name, hook in hooks.items():
        module = ModuleType(f"passes_of_{name}")
        namespace: dict[str, Any] = {"hook": hook}
        exec("def oprack_passes(register): hook(register)", namespace)
        module.oprack_passes = oprack.hookimpl(namespace["oprack_passes"])  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        dist = SimpleNamespace(name=f"oprack-{name}", version="1.0")
        entry_points.append(SimpleNamespace(name=name, value=module.__name__, dist=dist))
    manager = PackManager(entry_points, environ={})
    register(manager)
    return manager


def register(manager: PackManager) -> None:
    """Bring these ops in this process."""
    for definition in (Plus, Twice, Times, Copy, State, Draw, Grow, Repeat):
        manager.register_op(definition)
    manager.register_operator("repeat", RepeatOp)
    for function in (plus, twice, times, copy, state, draw, grow):
        manager.register_kernel(function)
