"""The model that the page shows: as it was saved, as the passes leave it, and how long its ops take."""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from oprack.cli.output import model_arguments
from oprack.desc import ProgramDesc, VarDesc
from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.io.inference_model import freeze_parameters, load_inference_model, load_program
from oprack.ir import Optimized
from oprack.ir.models import optimize_model, pass_records
from oprack.packs.manager import PackManager
from oprack.runtime import Executor, Profiler
from oprack.tensor import LoDTensor, Scope, numpy_dtype
from oprack_ir.feeds import explained
from oprack_ir.show import describe_model, parameter_problem

from oprack_ui.graph import draw
from oprack_ui.search import find

MAX_ELEMENTS = 1 << 26
RUNS = 5


class _Limits(TypedDict):
    memory_limit: int
    loop_limit: int


class ShownModel:
    """A model in files, loaded as everywhere in oprack.

    Args:
        path: Its folder or file, as on the command line.
        params: Its parameter file, where that has another name.
        manager: The packs that run it.
        memory_limit: Bytes that the outputs of one op may take.
        loop_limit: How often the blocks of its loops may run in one run.
        precisions: Dtypes that its ops may compute in besides their own, as `oprack.ir.select_passes` takes them.

    Raises:
        ModelError: It is damaged.
    """

    def __init__(
        self,
        path: str,
        params: str | None,
        manager: PackManager,
        memory_limit: int,
        loop_limit: int,
        precisions: Mapping[str, None] | None = None,
    ) -> None:
        self._precisions = precisions
        self.name = Path(path).name or path
        self._files = model_arguments(argparse.Namespace(model=path, params=params))
        self._manager = manager
        self._limits: _Limits = {"memory_limit": memory_limit, "loop_limit": loop_limit}
        folder, model_filename, _ = self._files
        self.program, self.feeds, self.fetches = load_program(folder, model_filename=model_filename)

    def report(self) -> dict[str, Any]:
        """What `oprack show --json` prints."""
        folder, model_filename, params = self._files
        problem = parameter_problem(self.program, folder, model_filename, params)
        report = describe_model(self.program, self.feeds, self.fetches, self._manager)
        return {"name": self.name, "parameter_problem": problem} | report

    def graph(self, stage: str, block: str, opened: Sequence[str], folded: bool) -> dict[str, Any]:
        """A block as boxes and lines.

        Args:
            stage: "saved" or "rewritten".
            block: Its number.
            opened: Names of the folded chains that are shown op by op.
            folded: Whether chains of ops are folded at all.

        Raises:
            NotFoundError: There is no such stage or block.
        """
        program = self._program(stage)
        if not block.isascii() or not block.isdigit() or int(block) >= len(program.blocks):
            raise NotFoundError(f"block {block!r}; expected a number below {len(program.blocks)}")
        owners = owners_of(program, self._manager)
        drawn = draw(program.blocks[int(block)], owners, opened, folded, self.feeds)
        return drawn | {"blocks": _places(program)}

    def find(self, stage: str, query: str) -> dict[str, Any]:
        """Ops and variables of all blocks by parts of their names.

        Args:
            stage: "saved" or "rewritten".
            query: Words that are all in the names.

        Raises:
            NotFoundError: There is no such stage.
        """
        return find(self._program(stage), query)

    def _program(self, stage: str) -> ProgramDesc:
        if stage not in ("saved", "rewritten"):
            raise NotFoundError(f"stage {stage!r}; expected saved or rewritten")
        return self.program.desc if stage == "saved" else self._optimized.program

    def passes(self) -> dict[str, Any]:
        """What each pass did, and how many ops of each type there are before and after."""
        before, after = self._counts(self.program.desc), self._counts(self._optimized.program)
        return {"passes": pass_records(self._optimized, self._manager), "before": before, "after": after}

    def _counts(self, program: ProgramDesc) -> list[dict[str, Any]]:
        counts: dict[str, int] = defaultdict(int)
        for block in program.blocks:
            for op in block.ops:
                counts[op.type] += 1
        owners = owners_of(program, self._manager)
        return [{"op": t, "count": n, "pack": owners[t]} for t, n in sorted(counts.items())]

    @cached_property
    def _executor(self) -> Executor:
        return Executor(manager=self._manager, **self._limits)

    @cached_property
    def _scope(self) -> Scope:
        return Scope()

    @cached_property
    def _optimized(self) -> Optimized:
        folder, model_filename, params = self._files
        model = load_inference_model(folder, self._scope, model_filename=model_filename, params_filename=params)
        done = optimize_model(model, self._scope, self._executor, precisions=self._precisions)[1]
        freeze_parameters(self._scope)
        return done

    def profile(self, shapes: Any) -> dict[str, Any]:
        """Run the rewritten model on random numbers, and say where the time goes.

        Args:
            shapes: By input its dims; open ones that are not given are 1.

        Returns:
            Milliseconds of a prepared run, and of one more run op by op, the ops and packs in it.

        Raises:
            InvalidArgumentError: The shapes are none.
            OprackError: As a run.
        """
        if shapes is not None and not isinstance(shapes, Mapping):
            raise InvalidArgumentError(f"shapes is {type(shapes).__name__}; expected an object from inputs to dims")
        random = np.random.default_rng(0)
        block = self.program.global_block()
        feed = {n: _values(n, block.find_var_recursive(n), (shapes or {}).get(n), random) for n in self.feeds}
        program = self._optimized.program

        def once() -> None:
            with explained(self, feed):
                self._executor.run(program, feed, self.fetches, self._scope, return_numpy=False)

        times = []
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            once()
            times.append((time.perf_counter() - start) * 1e3)
        with Profiler() as profiler:
            once()
        owners = owners_of(program, self._manager)
        ops = [row | {"pack": owners.get(row["op"], "")} for row in profiler.by_op()]
        totals: dict[str, float] = defaultdict(float)
        for row in ops:
            totals[row["pack"]] += row["total_ms"]
        packs = [{"pack": pack, "total_ms": total} for pack, total in sorted(totals.items(), key=lambda p: -p[1])]
        return {
            "first_ms": times[0],
            "median_ms": statistics.median(times[1:]),
            "ops": ops,
            "packs": packs,
            "feed": {n: list(t.shape) for n, t in feed.items()},
        }


def owners_of(program: ProgramDesc, manager: PackManager) -> dict[str, str]:
    """The distribution that brings each op type of a program; MISSING where none does."""
    types = {op.type for block in program.blocks for op in block.ops}
    return {t: manager.owner(t) if manager.has_op(t) else "MISSING" for t in types}


def _places(program: ProgramDesc) -> list[dict[str, Any]]:
    """Of each block what holds it: the op that runs it, and the block of that op; nothing of the first."""
    places: list[dict[str, Any]] = [{"op": "", "inside": -1} for _ in program.blocks]
    for block in program.blocks:
        for op in block.ops:
            for inner in op.sub_blocks():
                if 0 < inner < len(places):
                    places[inner] = {"op": op.type, "inside": block.idx}
    return places


def _values(name: str, var: VarDesc | None, given: Any, random: np.random.Generator) -> LoDTensor:
    """Random floats, or zeros of other dtypes, for one input; with LoD all rows are one sequence."""
    if var is None or var.shape is None or var.dtype_name() is None:
        raise InvalidArgumentError(f"input {name!r} declares no shape or dtype, so there is nothing to make up for it")
    declared = list(var.shape)
    dims = declared if given is None else given
    plain = isinstance(dims, list) and all(isinstance(d, int) and not isinstance(d, bool) for d in dims)
    if not plain or len(dims) != len(declared):
        raise InvalidArgumentError(f"input {name!r}: dims are {given!r}; expected {len(declared)} numbers")
    shape = [1 if d < 0 else d for d in dims]
    if math.prod(shape) > MAX_ELEMENTS:
        raise InvalidArgumentError(f"input {name!r}: {shape} has more than {MAX_ELEMENTS} elements")
    dtype = numpy_dtype(var.dtype)
    floats = dtype.name in ("float16", "float32", "float64", "bfloat16")
    array = random.random(shape).astype(dtype) if floats else np.zeros(shape, dtype)
    return LoDTensor(array, [[0, shape[0]]] * var.lod_level if shape else [])
