"""GradOpDef(of=...): declarations that do not fit the forward op are refused, with the slot and the near name."""

from __future__ import annotations

from typing import Any

import pytest
from oprack.errors import DefinitionError
from oprack.op import Attr, GradOpDef, Input, OpDef, Output


def _same_shape(ctx: Any) -> None:
    ctx.set_dim("Out", ctx.dim("X"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"reads": "Weigth"},
            r"reads names 'Weigth', which some does not have \(did you mean Weight\?\); expected some of",
        ),
        ({"shape_of": "Out@GRA"}, r"shape_of names 'Out@GRA'.*did you mean Out@GRAD"),
        (
            {"reads": "X", "grads_of": "Out"},
            r"grads_of names 'Out', which some does not have; expected some of X, Weight",
        ),
        ({"reads": "X Weight", "attrs": "rat"}, r"attrs names 'rat'.*did you mean rate"),
        ({"reads": "X Weight", "names": {"Y": "Z"}}, r"names names 'Y', which some does not have"),
        ({"reads": "X Weight", "when": {"Out": bool}}, r"when names 'Out', which this op does not have"),
        ({"reads": "X"}, r"the shape of Weight@GRAD does not follow, since Weight is not read; expected shape_of="),
        (
            {"reads": "X Weight", "dims": {"Out": tuple}},
            r"dims names 'Out', which is not read; expected some of X, Weight",
        ),
        ({"reads": "X", "like": "Out"}, r"like names 'Out', which is not read; expected one of X, Out@GRAD"),
        (
            {"reads": "X Weight", "names": {"X": "W"}, "grad_names": {"Weight": "W"}},
            r"slot 'W' would be an input and an output",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], text: str) -> None:
    class Some(OpDef, type="some"):
        X = Input("Any shape.")
        Weight = Input("Any shape.")
        Out = Output("Shape of X.")
        rate = Attr(0.5, "Rate.")
        infer_shape = _same_shape

    with pytest.raises(DefinitionError, match=r"definition of op 'some_grad' \(pack \w+\): " + text):

        class SomeGrad(GradOpDef, of=Some, **arguments):
            pass

    assert Some.make_grad is None


def test_slots_that_nothing_binds_and_second_gradients_are_refused() -> None:
    class Some(OpDef, type="some"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        infer_shape = _same_shape

    with pytest.raises(DefinitionError, match=r"slot 'Oud' can't be bound to one of some \(did you mean Out"):

        class Unbound(GradOpDef, of=Some, reads="X"):
            Oud = Input("No slot of some.")

    class SomeGrad(GradOpDef, of=Some, reads="X"):
        pass

    with pytest.raises(DefinitionError, match="some has the gradient some_grad already; expected one"):

        class Second(GradOpDef, of=Some, type="second", reads="X"):
            pass

    with pytest.raises(
        DefinitionError, match=r"of=GradOpDef has no op type; expected the definition of the forward op"
    ):

        class OfNone(GradOpDef, of=GradOpDef, reads="X"):
            pass


def test_a_gradient_in_another_module_needs_a_make_grad() -> None:
    class Some(OpDef, type="some"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        infer_shape = _same_shape

    Some.__module__ = "another.module"
    with pytest.raises(
        DefinitionError, match=r"Some is in module another\.module; expected both in one module, or a make_"
    ):

        class SomeGrad(GradOpDef, of=Some, reads="X"):
            pass
