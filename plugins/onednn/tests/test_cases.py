"""The case files of every op with a kernel here, computed by oneDNN wherever it serves them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import oprack_onednn
import pytest
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.testing.cases import load_cases
from oprack.testing.runner import check_case, differences, missing_ops, run_case
from oprack_onednn.plan import BoundPlan

CASES = Path(__file__).parents[3] / "tests" / "data" / "cases"
OPS = sorted(
    t
    for t in tomllib.loads((Path(oprack_onednn.__file__).parent / "ops.toml").read_text("utf-8"))["kernels"]
    if not t.endswith("_grad")
)
# oneDNN's erf has no value for infinities: gelu gives NaN there, NumPy's kernel an infinity or NaN
KNOWN = {"gelu.0020"}
# cases that are float64, integers, of sizes that oneDNN samples otherwise, or with weights that may be trained
NEVER_SERVED = {"concat", "nearest_interp", "gru"}


@pytest.fixture
def runs(monkeypatch):
    """Counts the plans that ran."""
    count = []
    run = BoundPlan.run

    def counted(self, *args):
        count.append(1)
        return run(self, *args)

    monkeypatch.setattr(BoundPlan, "run", counted)
    return count


@pytest.mark.parametrize("op", OPS)
def test_cases_agree_with_paddle(op, any_size, runs):
    files = [f for f in (CASES / f"{op}.npz", CASES / "legacy_1_8_5" / f"{op}.npz") if f.exists()]
    assert files, f"no case file runs {op}"
    failures = []
    plain = Executor(prepared=False, excluded_libraries=("onednn",))
    for case in (c for f in files for c in load_cases(f) if c.id not in KNOWN):
        for stage in ("forward", "gradient", "gradient2"):
            if not case.has(stage) or missing_ops(case, stage, default_manager()):
                continue
            reasons = check_case(case, stage)
            if reasons and not differences(case, stage, run_case(case, stage, plain)):
                failures.append(f"{case.id} {stage}: {'; '.join(reasons)}")
    assert not failures, "\n".join(failures)
    assert runs or op in NEVER_SERVED
