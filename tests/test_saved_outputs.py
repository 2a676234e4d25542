"""Outputs that gradients read: whoever changes one in place gets an error or the right gradient, for every op."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import no_grad, seed
from oprack.autograd import backward
from oprack.errors import OprackError, PreconditionNotMetError
from oprack.functional.tensor import to_tensor
from oprack.interpreter.modes import current_mode
from oprack.interpreter.op_expr import OpExpr
from oprack.packs.manager import default_manager
from oprack.testing.fuzz.examples.calls import seeds
from oprack.testing.splitting import expression, leaf

ROOT = Path(__file__).parent
FOLDERS = [ROOT / "data" / "cases", *sorted((ROOT.parent / "op_packages").glob("*/tests/cases"))]


def has_gradient(op_type: str) -> bool:
    info = default_manager().op_info(op_type)
    return info.grad_op_maker is not None and any(not p.intermediate for p in info.proto.outputs.values())


def gradients(expr: OpExpr, values: list[Any], overwritten: int | None = None) -> list[np.ndarray | None]:
    """Of a sum of the outputs; one of them is filled with zeros before."""
    seed(7)
    args = [leaf(v) for v in values]
    made = current_mode().interpreter.apply(expr, args)
    if overwritten is not None:
        if made[overwritten] is None or any(made[overwritten] is a for a in args):
            return gradients(expr, values)
        with no_grad():
            made[overwritten].zero_()
    starts = [y for y in made if y is not None and y.requires_grad]
    ones = [to_tensor(np.cos(np.arange(y.size)).reshape(y.shape).astype(y._meta.dtype)) for y in starts]
    if starts:
        backward(starts, ones)
    return [None if a is None or a.grad is None else a.grad.numpy() for a in args]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op_type", [*filter(has_gradient, sorted(default_manager().op_types()))])
def test_an_output_that_was_changed_gives_no_wrong_gradient(op_type: str) -> None:
    try:
        calls = seeds(op_type, FOLDERS, most=1)[:1]
    except AttributeError:
        return  # an input is a rank table, which is no tensor
    for call in calls:
        expr, values = expression(call)
        if expr is None:
            continue
        try:
            wanted = gradients(expr, values)
        except OprackError:
            continue  # the case is of an error, or needs what only a program has
        if any(g is not None for g in wanted):
            for j in range(sum(len(flags) for _, flags in expr.outputs)):
                try:
                    got = gradients(expr, values, overwritten=j)
                except PreconditionNotMetError:
                    continue
                for g, w in zip(got, wanted, strict=True):
                    np.testing.assert_array_equal(g, w, err_msg=f"output {j}")
