"""The case files of every op with a kernel here, computed by oneDNN wherever it serves them, alone and with ops behind
that passes take in.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import oprack_onednn
import pytest
from native_calls import native_runs
from oprack.ir import optimize, select_passes
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope
from oprack.testing.cases import load_cases
from oprack.testing.runner import check_case, differences, missing_ops, run_case

CASES = Path(__file__).parents[3] / "tests" / "data" / "cases"
OPS = sorted(
    t
    for t in tomllib.loads((Path(oprack_onednn.__file__).parent / "ops.toml").read_text("utf-8"))["kernels"]
    # passes make some, whose cases are those of the pack nn; Paddle has no attention over sequences
    if not t.endswith(("_grad", "_post_ops")) and t != "sequence_attention"
)
# oneDNN's erf has no value for infinities: gelu gives NaN there, NumPy's kernel an infinity or NaN
KNOWN = {"gelu.0020"}
# cases that are float64, integers, narrow, of sizes that oneDNN samples otherwise, or with weights that may be trained
NEVER_SERVED = {"concat", "nearest_interp", "gru", "lstm", "reduce_max"}
WITHOUT = ("onednn",)
CONSTANT = {"Filter", "Y", "W", "Bias", "Weight", "WeightIh", "WeightHh"}
# Ops of which the passes of this plugin take in what follows, in some case
TAKES_IN = {"conv2d", "conv2d_transpose", "depthwise_conv2d", "matmul_v2", "mul"}


@pytest.fixture
def runs():
    """Counts what ran in native code."""
    with native_runs() as count:
        yield count


@pytest.mark.parametrize("op", OPS)
def test_cases_agree_with_paddle(op, any_size, runs):
    files = [f for f in (CASES / f"{op}.npz", CASES / "legacy_1_8_5" / f"{op}.npz") if f.exists()]
    assert files, f"no case file runs {op}"
    failures = []
    plain = Executor(prepared=False, excluded_libraries=WITHOUT)
    for case in (c for f in files for c in load_cases(f) if c.id not in KNOWN):
        for stage in ("forward", "gradient", "gradient2"):
            if not case.has(stage) or missing_ops(case, stage, default_manager()):
                continue
            reasons = check_case(case, stage)
            if reasons and not differences(case, stage, run_case(case, stage, plain)):
                failures.append(f"{case.id} {stage}: {'; '.join(reasons)}")
    assert not failures, "\n".join(failures)
    assert runs or op in NEVER_SERVED


def with_tail(case):
    """Program, scope, feeds and fetches: every float32 output is scaled and put through relu; weights are constant."""
    program, scope, feed = case.program(), Scope(), dict(case.feeds)
    block = program.global_block()
    constant = {n for op in block.ops for s, names in op.inputs.items() if s in CONSTANT for n in names}
    for name in case.persistable | constant:
        if isinstance(feed.get(name), LoDTensor) and not feed[name].lod:
            block.vars[name].persistable = True
            array = feed.pop(name).array.copy()
            array.flags.writeable = False  # as predictors have it
            scope.var(name).set(array)
    fetches = []
    for f in case.expected("forward"):
        if not isinstance(f.value, LoDTensor) or f.value.dtype != "float32" or f.info.get("intermediate"):
            continue
        names = [f.name, f"{f.name}/scaled", f"{f.name}/relu"]
        attrs = {"scale": 0.5, "bias": 0.25, "bias_after_scale": True}
        for op_type, given, made, more in zip(("scale", "relu"), names, names[1:], (attrs, {}), strict=False):
            block.create_var(made)
            op = block.append_op(op_type, {"X": given}, {"Out": made}, more)
            infer_op(op, block, default_manager().op_info(op_type))
        fetches.append(names[-1])
    return program, scope, feed, fetches


@pytest.mark.parametrize("op", OPS)
def test_what_follows_an_op_may_be_taken_in(op, any_size):
    files = [f for f in (CASES / f"{op}.npz", CASES / "legacy_1_8_5" / f"{op}.npz") if f.exists()]
    matches = 0
    for case in (c for f in files for c in load_cases(f) if not c.stochastic and c.id not in KNOWN):
        program, scope, feed, fetches = with_tail(case)
        if not fetches or not all(isinstance(v, LoDTensor) for v in feed.values()):
            continue
        plain = Executor(excluded_libraries=WITHOUT).run(program, feed, fetches, scope, return_numpy=False)
        done = optimize(program.desc, scope, keep=fetches, passes=select_passes(), debug=True)
        assert not [r.error for r in done.reports if r.error], case.id
        matches += sum(r.matches for r in done.reports if r.name.startswith("onednn_"))
        executor = Executor()
        for _ in range(2):  # traced, then as a chain
            got = executor.run(done.program, feed, fetches, scope, return_numpy=False)
        for name, want, value in zip(fetches, plain, got, strict=True):
            assert value.lod == want.lod
            size = float(np.abs(want.array[np.isfinite(want.array)]).max(initial=1.0))
            np.testing.assert_allclose(
                value.array, want.array, rtol=2e-5, atol=2e-5 * size, err_msg=f"{case.id}: {name}"
            )
    assert matches or op not in TAKES_IN
