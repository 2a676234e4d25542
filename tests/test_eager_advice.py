"""Advice in errors of eager calls, modules and optimizers: following it ends the error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, to_tensor
from oprack.errors import OprackError

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def _leaf(**options: Any) -> Any:
    return to_tensor(A, requires_grad=True, **options)


def _twice(retain: bool) -> None:
    y = (_leaf() ** 2.0).sum()
    y.backward(retain_graph=retain)
    y.backward()


def _changed_in_place(copy: bool) -> None:
    x = _leaf() * 1.0
    y = (x * x).sum()
    (x.clone() if copy else x).add_(to_tensor(A))
    y.backward()


def _write(guarded: bool) -> None:
    x = _leaf()
    if guarded:
        with oprack.no_grad():
            x[0] = 0.0
    else:
        x[0] = 0.0


def _steps(parameters: Any, backward: bool = True) -> None:
    sgd = optimizer.SGD(0.1, parameter_list=parameters)
    if backward:
        for p in parameters or ():
            (p * p).sum().backward()
    sgd.step()


def _module(right: bool) -> None:
    class Part(nn.Module):
        def __init__(self) -> None:
            if right:
                super().__init__()
            self.inner = nn.ReLU()

    Part()


def _traced(right: bool) -> None:
    function = (lambda x: x.relu()) if right else (lambda x: "text")
    oprack.to_program(function, [oprack.InputSpec([2, 3])])


CASES: dict[str, tuple[Callable[[], Any], str, Callable[[], Any]]] = {
    "backward twice": (lambda: _twice(False), r"backward\(retain_graph=True\) the first time", lambda: _twice(True)),
    "changed in place": (lambda: _changed_in_place(False), r"x\.clone\(\)", lambda: _changed_in_place(True)),
    "write to a leaf": (lambda: _write(False), r"inside oprack\.no_grad\(\)", lambda: _write(True)),
    "requires_grad of a result": (
        lambda: setattr(_leaf() * 2.0, "requires_grad", False),
        r"use detach\(\)",
        lambda: setattr((_leaf() * 2.0).detach(), "requires_grad", True),
    ),
    "gradients of integers": (
        lambda: to_tensor([1, 2], requires_grad=True),
        "only floating tensors have gradients; cast it first",
        lambda: to_tensor([1, 2], "float32", requires_grad=True),
    ),
    "nothing recorded": (
        lambda: to_tensor(A).sum().backward(),
        "requires_grad=True on the inputs",
        lambda: _leaf().sum().backward(),
    ),
    "many elements": (
        lambda: _leaf().relu().backward(),
        "expected one element, or its gradient given",
        lambda: _leaf().relu().backward(np.ones((2, 3), np.float32)),
    ),
    "unused input of grad": (
        lambda: oprack.grad(_leaf().sum(), [_leaf()]),
        "pass allow_unused=True",
        lambda: oprack.grad(_leaf().sum(), [_leaf()], allow_unused=True),
    ),
    "another shape": (
        lambda: to_tensor(A).set_value(A.T),
        "expected its own",
        lambda: to_tensor(A).set_value(A.T.reshape(A.shape)),
    ),
    "a dim that is none": (
        lambda: F.unbind(to_tensor(A), axis=5),
        r"axis is 5; expected a dim of shape \[2, 3\], from -2 to 1",
        lambda: F.unbind(to_tensor(A), axis=1),
    ),
    "the truth of many": (
        lambda: bool(to_tensor(A)),
        r"has 6 elements; expected one: write x\.any\(\) or x\.all\(\)",
        lambda: bool((to_tensor(A) > 0).any()) or bool((to_tensor(A) > 0).all()),
    ),
    "lists of several lengths": (
        lambda: to_tensor([[1, 2], [3]]),
        r"lists of equal lengths.* offsets: lod=\[\[0, 2, 3\]\]",
        lambda: to_tensor([1, 2, 3], lod=[[0, 2, 3]]),
    ),
    "an index that is none": (
        lambda: to_tensor(A)[2],
        r"index 2 of tensor float32\[2, 3\] is out of range for dim 0 of size 2; expected -2 to 1",
        lambda: to_tensor(A)[1],
    ),
    "parts that are not equal": (
        lambda: oprack.split(to_tensor(np.zeros(5, np.float32)), 2),
        r"give the size of each part, such as \[3, -1\]",
        lambda: oprack.split(to_tensor(np.zeros(5, np.float32)), [3, -1]),
    ),
    "a letter of two sizes": (
        lambda: oprack.einsum("ij,jk", to_tensor(A), to_tensor(A)),
        "'j' is a dim of size 3 and one of size 2; expected one size for each letter",
        lambda: oprack.einsum("ij,kj", to_tensor(A), to_tensor(A)),
    ),
    "other features than a net has": (
        lambda: nn.LSTM(4, 2)(to_tensor(A[None])),
        "expected .* 3.*the features of Input",
        lambda: nn.LSTM(3, 2)(to_tensor(A[None])),
    ),
    "attribute misspelt": (
        lambda: F.softmax(to_tensor(A), axix=1),
        "no attribute 'axix'; expected axis",
        lambda: F.softmax(to_tensor(A), axis=1),
    ),
    "blocks": (
        lambda: F.while_(to_tensor([True]), [to_tensor(A)]),
        "use Python's own if and while",
        lambda: [to_tensor(A) for _ in range(2)],
    ),
    "no super().__init__": (lambda: _module(False), r"call super\(\)\.__init__\(\)", lambda: _module(True)),
    "no gradient to step with": (
        lambda: _steps(nn.Linear(2, 2).parameters(), backward=False),
        r"call backward\(\) before step\(\)",
        lambda: _steps(nn.Linear(2, 2).parameters()),
    ),
    "nothing to step": (
        lambda: _steps(None),
        r"parameters=net\.parameters\(\)",
        lambda: _steps(nn.Linear(2, 2).parameters()),
    ),
    "one tensor twice": (
        lambda: _steps([_leaf(name="w"), _leaf(name="w")]),
        r"each once and with a name of its own",
        lambda: _steps([_leaf(), _leaf()]),
    ),
    "minimize": (
        lambda: optimizer.SGD(0.1, parameter_list=[_leaf(name="w")]).minimize(_leaf().sum()),
        r"call loss\.backward\(\) and step\(\)",
        lambda: _steps([_leaf(name="w")]),
    ),
    "regularization": (
        lambda: optimizer.SGD(0.1, regularization="l2"),
        r"oprack\.optimizer, such as L2Decay\(0\.01\)",
        lambda: optimizer.SGD(0.1, regularization=optimizer.L2Decay(0.01)),
    ),
    "a rate that is none": (
        lambda: optimizer.SGD("fast"),
        r"a scheduler of oprack\.optimizer\.lr",
        lambda: optimizer.SGD(optimizer.lr.StepDecay(0.1, step_size=2)),
    ),
    "what a traced function returns": (lambda: _traced(False), "expected tensors", lambda: _traced(True)),
    "a state of another network": (
        lambda: nn.Linear(2, 2).set_state_dict({"weight": A}),
        "pass strict=False to take what fits",
        lambda: nn.Linear(2, 3).set_state_dict({"weight": A}, strict=False),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_following_the_advice_ends_the_error(case: str) -> None:
    wrong, text, right = CASES[case]
    with pytest.raises(OprackError, match=text):
        wrong()
    right()


def test_nobody_looks_for_advice_that_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """hasattr() asks tensors for members that they lack, in operators of two dtypes as well."""

    def searched(*given: object) -> str:
        raise AssertionError(given)

    x, y = oprack.to_tensor([1.5]), oprack.to_tensor([2])
    monkeypatch.setattr("oprack.functional.written.did_you_mean", searched)
    assert not hasattr(x, "no_such_member")
    assert (x + y).tolist() == [3.5]
    monkeypatch.undo()
    with pytest.raises(AttributeError, match=r"'Tensor' object has no attribute or op 'rleu' \(did you mean relu, "):
        x.rleu  # noqa: B018
