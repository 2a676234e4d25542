"""Small programs: written op by op (fixture `builder`), or with layers, and differentiated (`differentiated`)."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import Executor, LoDTensor, layers
from oprack.autodiff import gradients
from oprack.desc import OpDesc
from oprack.layers import program_guard
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.types import AttrType, VarType

TYPES = {
    "sub_block": AttrType.BLOCK,
    "shape": AttrType.LONGS,
    "original_output_grad": AttrType.STRINGS,
    "ex_states": AttrType.STRINGS,
    "states": AttrType.STRINGS,
}


class Builder:
    """`b = Builder(); b.op("scale", X="x", Out="y", scale=2.0); b.run({"x": a}, ["y"])`."""

    def __init__(self) -> None:
        self.program = Program()
        self.block = self.program.global_block()

    def var(self, *names: str, kind: VarType = VarType.LOD_TENSOR, persistable: bool = False) -> None:
        """Declare variables in the current block."""
        for name in names:
            dtype = VarType.FP32 if kind == VarType.LOD_TENSOR_ARRAY else None  # None: anything may be fed
            self.block.create_var(name, type=kind, dtype=dtype, persistable=persistable)

    def op(self, type: str, **given: object) -> None:
        """Append an op; keywords are slots (a name or a list of names, `X_grad` for X@GRAD) and attributes.

        Outputs that no block has declared are declared here.
        """
        proto = default_manager().op_info(type).proto
        sides: tuple[dict, dict, dict] = ({}, {}, {})
        for key, value in given.items():
            name = key.removesuffix("_grad") + "@GRAD" if key.endswith("_grad") else key
            side = 0 if name in proto.inputs else 1 if name in proto.outputs else 2
            sides[side][name if side < 2 else key] = value
        for names in sides[1].values():
            for name in [names] if isinstance(names, str) else names:
                if self.block.find_var_recursive(name) is None:
                    self.var(name)
        types = {k: TYPES[k] for k in sides[2] if k in TYPES}
        self.block.append_op(OpDesc(type, *sides, types))

    def inside(self) -> BlockScope:
        """`with b.inside() as index:` appends to a new sub-block."""
        return BlockScope(self)

    def constant(self, name: str, value: float, dtype: VarType = VarType.FP32, shape=(1,)) -> None:
        self.op("fill_constant", Out=name, shape=list(shape), dtype=int(dtype), value=float(value))

    def run(self, feed=None, fetch=(), **options: object) -> list:
        """Fetched values; options go to the Executor."""
        executor = Executor(**options)
        return executor.run(self.program, feed or {}, list(fetch), return_numpy=False)

    def arrays(self, writes: list[tuple[int, float]]) -> Builder:
        """Writes tensors [2, 1] of a value v<k> to places i<k> of `array`: (place, value) for each k."""
        self.var("array", kind=VarType.LOD_TENSOR_ARRAY)
        for k, (place, value) in enumerate(writes):
            self.constant(f"i{k}", place, VarType.INT64)
            self.constant(f"v{k}", value, shape=(2, 1))
            self.op("write_to_array", X=f"v{k}", I=f"i{k}", Out="array")
        return self


class BlockScope:
    """Appends to a sub-block while the with statement lasts; gives its index."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def __enter__(self) -> int:
        self.outer = self.builder.block
        self.builder.block = self.builder.program.desc.append_block(self.outer)
        return self.builder.block.idx

    def __exit__(self, *_: object) -> None:
        self.builder.block = self.outer


@pytest.fixture(scope="session")
def builder() -> type[Builder]:
    """The class Builder."""
    return Builder


class Differentiated:
    """A program with the gradients of sum(out * cotangent).

    function: from Variables to a Variable. values: what to feed. options: of `gradients`.
    """

    def __init__(self, function, values, **options):
        self.values = dict(values)
        self.program = Program()
        with program_guard(self.program, Program()):
            given = []
            for name, value in values.items():
                array = np.asarray(value)
                lod = len(getattr(value, "lod", []))
                var = layers.data(name, [-1, *array.shape[1:]] if lod else array.shape, array.dtype, lod)
                var.stop_gradient = False
                given.append(var)
            self.out = function(*given)
        self.forward = self.program.clone()
        self.shape = self.run_forward(self.values).shape
        self.cotangent = np.linspace(0.5, 1.5, int(np.prod(self.shape))).reshape(self.shape)
        with program_guard(self.program, Program()):
            seed = layers.data("cotangent", self.shape, "float64")
        self.names = gradients(self.out, given, seed, **options)

    def run_forward(self, feed):
        return np.asarray(Executor().run(self.forward, feed, [self.out.name], return_numpy=False)[0])

    def run(self, prepared=True):
        """Gradients by input, None where nothing flows."""
        feed = {**self.values, "cotangent": self.cotangent}
        names = [n for n in self.names if n is not None]
        values = Executor(prepared=prepared).run(self.program, feed, names, return_numpy=False)
        found = {n: np.asarray(value) for n, value in zip(names, values, strict=True)}
        return [found.get(n) for n in self.names]

    def slope(self, name, direction):
        """Central difference of the loss along a direction."""
        losses = []
        for sign in (1e-6, -1e-6):
            value = self.values[name]
            moved = np.asarray(value) + sign * direction
            moved = LoDTensor(moved, value.lod) if isinstance(value, LoDTensor) else moved
            losses.append((self.run_forward({**self.values, name: moved}) * self.cotangent).sum())
        return (losses[0] - losses[1]) / 2e-6

    def check(self, prepared=True):
        """Compare each gradient with the slope in a random direction; None stands for 0."""
        rng = np.random.default_rng(1)
        for name, grad in zip(self.values, self.run(prepared), strict=True):
            direction = rng.standard_normal(np.asarray(self.values[name]).shape)
            along = 0 if grad is None else (grad * direction).sum()
            assert np.isclose(along, self.slope(name, direction), rtol=1e-6, atol=1e-8), name


@pytest.fixture(scope="session")
def differentiated() -> type[Differentiated]:
    """The class Differentiated."""
    return Differentiated
