"""One executor and one program in several threads, and runs inside runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope

Build = Callable[..., Program]
W = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def gather(build: Build) -> Program:
    """y = 2 rows of w at i, in place on the way, with the LoD of i."""
    program = build(
        {"i": LoDTensor(np.array([0]), [[0, 1]]), "w": W},
        [
            ("pick", {"Ids": "i", "W": "w"}, {"Out": "y"}),
            ("flat", {"X": "y"}, {"Out": "v"}),
            ("double", {"X": "y"}, {"Out": "y"}),
        ],
    )
    program.global_block().vars["w"].persistable = True
    return program


def test_threads_share_an_executor_a_program_and_parameters(build: Build) -> None:
    program, exe = gather(build), Executor()
    shared = Scope()
    shared.var("w").set(W)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        own = Scope()
        own.var("w").set(W * seed)
        for k in range(150):
            n = int(rng.integers(0, 9))
            ids = rng.integers(0, 3, n)
            lod = [[0, *sorted(rng.integers(0, n + 1, int(rng.integers(0, 3))).tolist()), n]]
            scope, factor = (own, seed) if k % 3 else (shared, 1)
            y, v = exe.run(program, {"i": LoDTensor(ids, lod)}, ["y", "v"], scope, return_numpy=False)
            rows = factor * W[ids]
            if not ((y.array == 2 * rows).all() and (v.array == rows.reshape(-1)).all() and y.lod == lod):
                wrong.append((seed, k))

    def guarded(seed: int) -> None:
        try:
            work(seed)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and shared.kids() == [] and (shared.find_var("w").get().array == W).all()


def test_an_observer_may_run_the_same_program_on_the_same_executor(build: Build, rack: PackManager) -> None:
    program, exe = gather(build), Executor()
    scope = Scope()
    scope.var("w").set(W)
    inner: list[Any] = []

    class Probe:
        def before_op(self, op: Any, local: Scope) -> None:
            if op.type == "double":
                inner.extend(exe.run(program, {"i": LoDTensor(np.array([2]), [[0, 1]])}, ["v"], scope))

        def after_op(self, op: Any, local: Scope) -> None: ...

    prepared = exe.prepare(program.desc)
    for _ in range(2):
        local = scope.new_scope()
        prepared.block(0).create_variables(local)
        local.var("i").set(np.array([0, 1]))
        exe.run_prepared(prepared, local, ["y"], observers=[Probe()])
        assert (local.find_var("y").get().array == 2 * W[:2]).all()
    assert [v.tolist() for v in inner] == [[5, 6], [5, 6]]
