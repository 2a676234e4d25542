"""paddle.static.nn: branches and loops."""

from __future__ import annotations

from typing import Any

import oprack
from oprack import functional as F
from oprack import layers

from oprack_paddle.state import in_dynamic_mode


def while_loop(cond: Any, body: Any, loop_vars: Any, is_test: bool = False, name: Any = None) -> Any:
    """Run a body as long as a condition holds."""
    if in_dynamic_mode():
        values = list(loop_vars)
        while bool(cond(*values)):
            found = body(*values)
            values = list(found) if isinstance(found, list | tuple) else [found]
        return values
    return layers.while_loop(cond, body, loop_vars, is_test, name)


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: Any = None, return_names: Any = None) -> Any:
    """Run one of two branches."""
    if in_dynamic_mode():
        chosen = true_fn if bool(pred) else false_fn
        return None if chosen is None else chosen()
    return layers.cond(pred, true_fn, false_fn, name)


def case(pred_fn_pairs: Any, default: Any = None, name: Any = None) -> Any:
    """Run the branch of the first condition that holds; else the default, or the last branch."""
    if in_dynamic_mode():
        for pred, function in pred_fn_pairs:
            if bool(pred):
                return function()
        return (default or pred_fn_pairs[-1][1])()
    return layers.case(pred_fn_pairs, default, name)


def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: Any = None) -> Any:
    """Run the branch of a number; else the default, or the branch of the largest number."""
    pairs = branch_fns.items() if isinstance(branch_fns, dict) else branch_fns
    numbered = [p if isinstance(p, tuple) else (i, p) for i, p in enumerate(pairs)]
    numbered = sorted(numbered, key=lambda p: p[0])
    if default is None:
        default = numbered[-1][1]
    if in_dynamic_mode():
        chosen: Any = dict(numbered)
        return chosen.get(int(branch_index), default)()
    index = branch_index.astype("int64")
    tests = [(F.equal(index, oprack.full([1], i, dtype="int64")), f) for i, f in numbered]
    return layers.case(tests, default, name)
