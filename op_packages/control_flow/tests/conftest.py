"""Small programs, written op by op; the fixture `builder` gives the class that writes them."""

from __future__ import annotations

import pytest
from oprack import Executor
from oprack.desc import OpDesc
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
