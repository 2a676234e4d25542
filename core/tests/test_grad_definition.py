"""GradOpDef(of=...): what follows from the forward op, and what overrides it."""

from __future__ import annotations

from typing import Any

import pytest
from oprack.desc import BlockDesc, OpDesc
from oprack.errors import AttributeValueError, InvalidArgumentError
from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, OpInfo, Output, build_op_info, dtype_of, empty_grad
from oprack.op.desc_rules import infer_op
from oprack.op.grad import ForwardOp
from oprack.program import Program


def _same_shape(ctx: Any) -> None:
    ctx.set_dim("Out", ctx.dim("X"))


class Blend(OpDef, type="blend"):
    """Out = (1 - rate) X + rate Y * Weight."""

    X = Input("Any shape.")
    Y = Input("Any shapes.", duplicable=True)
    Weight = Input("One element.", dispensable=True, extra=True)
    Out = Output("Shape of X.")
    Mask = Output("Scratch.", intermediate=True, extra=True)
    rate = Attr(0.5, "How much of Y.").between(0.0, 1.0)
    lambda_ = Attr(1, "A name that Python can't spell.")
    infer_shape = _same_shape


class BlendGrad(GradOpDef, of=Blend, reads="Mask Weight", shape_of="X Y", grads_of="X Y?"):
    """Gradient of blend."""


class Twice(OpDef, type="twice"):
    """Out = 2 X."""

    X = Input("Any shape.")
    Axis = Input("Which way.", dispensable=True)
    Out = Output("Shape of X.")
    expected_kernel_type = dtype_of("X")
    infer_shape = _same_shape


class TwiceGrad(GradOpDef, of=Twice, reads="Axis", grads_of="X", like="Out@GRAD", linear=True):
    """X@GRAD = 2 Out@GRAD."""


def _info(definition: type[OpDef]) -> OpInfo:
    return build_op_info(definition, "here")


def _flags(slots: dict[str, Any]) -> dict[str, str]:
    names = {"dispensable": "?", "duplicable": "*", "intermediate": "i", "extra": "x"}
    return {s.name: "".join(c for flag, c in names.items() if getattr(s, flag)) for s in slots.values()}


def _made(definition: type[OpDef], inputs: dict[str, int], outputs: dict[str, int], **attrs: Any) -> GradOp:
    info = _info(definition)
    made = info.require_grad_op_maker()(ForwardOp(info.proto, attrs, inputs, outputs))
    assert isinstance(made, GradOp)
    return made


def _bound(refs: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {slot: (ref.role, ref.slot) for slot, ref in refs.items()}


def _block(**shapes: tuple[list[int], str, int]) -> BlockDesc:
    block = Program().global_block()
    for name, (shape, dtype, lod_level) in shapes.items():
        block.create_var(name, shape=shape, dtype=dtype, lod_level=lod_level)
    return block


def test_slots_come_in_the_forward_ops_order_with_its_flags() -> None:
    proto = _info(BlendGrad).proto
    assert proto.type == "blend_grad"
    assert _flags(proto.inputs) == {"X": "", "Y": "*", "Weight": "?x", "Mask": "", "Out@GRAD": ""}
    assert _flags(proto.outputs) == {"X@GRAD": "", "Y@GRAD": "?*"}
    assert [*proto.inputs] == ["X", "Y", "Weight", "Mask", "Out@GRAD"]


def test_slots_are_documented_by_what_they_are_of_the_forward_op() -> None:
    proto = _info(BlendGrad).proto
    assert proto.inputs["Weight"].doc == "As Weight of blend."
    assert proto.inputs["X"].doc == "As X of blend; only its shape and LoD are read."
    assert (
        proto.inputs["Out@GRAD"].doc == proto.outputs["X@GRAD"].doc.replace("X", "Out") == "Gradient of Out of blend."
    )


def test_attributes_have_the_forward_ops_defaults_and_checks() -> None:
    info = _info(BlendGrad)
    assert info.checker is not None
    assert info.checker.check({}) == {"rate": 0.5, "lambda": 1}
    with pytest.raises(AttributeValueError, match=r"op blend_grad: attribute 'rate' is 2\.0; expected a value between"):
        info.checker.check({"rate": 2.0})


def test_make_grad_binds_the_slots_that_are_there_and_hands_all_attributes_on() -> None:
    made = _made(Blend, {"X": 1, "Y": 2, "Weight": 1}, {"Out": 1, "Mask": 1}, rate=0.25, foreign=3)
    assert (made.type, made.attrs) == ("blend_grad", {"rate": 0.25, "foreign": 3})
    assert _bound(made.inputs) == {
        "X": ("input", "X"),
        "Y": ("input", "Y"),
        "Weight": ("input", "Weight"),
        "Mask": ("output", "Mask"),
        "Out@GRAD": ("output_grad", "Out"),
    }
    assert _bound(made.outputs) == {"X@GRAD": ("input_grad", "X"), "Y@GRAD": ("input_grad", "Y")}
    without = _made(Blend, {"X": 1, "Y": 2}, {"Out": 1})
    assert [*without.inputs] == ["X", "Y", "Out@GRAD"]


def test_gradients_have_shape_lod_and_dtype_of_their_variables() -> None:
    info = _info(BlendGrad)
    assert tuple(info.no_need_buffer_vars) == ("X", "Y")
    block = _block(
        x=([2, 3], "float32", 1),
        a=([4], "float64", 0),
        b=([5], "float64", 1),
        dout=([2, 3], "float32", 0),
        mask=([2, 3], "uint8", 0),
        dx=([], "int32", 0),
        da=([], "int32", 0),
        db=([], "int32", 0),
    )
    inputs = {"X": ["x"], "Y": ["a", "b"], "Mask": ["mask"], "Out@GRAD": ["dout"]}
    infer_op(OpDesc("blend_grad", inputs, {"X@GRAD": ["dx"], "Y@GRAD": ["da", "db"]}, {}), block, info)
    found = {
        n: (list(v.shape or ()), v.dtype_name(), v.lod_level) for n in ("dx", "da", "db") if (v := block.find_var(n))
    }
    assert found == {"dx": ([2, 3], "float32", 1), "da": ([4], "float64", 0), "db": ([5], "float64", 1)}


def test_the_kernels_dtype_is_the_gradients_where_inputs_may_differ() -> None:
    class Context:
        op_type = "blend_grad"

        def input_count(self, slot: str) -> int:
            return 1

        def is_initialized(self, slot: str, i: int) -> bool:
            return slot != self.absent

        def dtype(self, slot: str, i: int) -> str:
            return slot

        def kernel_type(self, dtype: str) -> str:
            return dtype

        absent = ""

    for definition in (BlendGrad, TwiceGrad):  # something is read for its shape; the forward op has a rule of its own
        rule = _info(definition).expected_kernel_type
        assert rule is not None and rule(Context()) == "Out@GRAD"

    class Plain(OpDef, type="plain"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        infer_shape = _same_shape

    class PlainGrad(GradOpDef, of=Plain, reads="X"):
        pass

    assert _info(PlainGrad).expected_kernel_type is None


def test_reads_that_names_a_gradient_gives_the_order() -> None:
    class Fit(OpDef, type="fit"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        Index = Output("Has no gradient.")
        infer_shape = _same_shape

    class FitGrad(GradOpDef, of=Fit, reads="Out@GRAD Index? X", shape_of="X"):
        pass

    assert _flags(_info(FitGrad).proto.inputs) == {"Out@GRAD": "", "Index": "?", "X": ""}
    assert _info(FitGrad).no_need_buffer_vars == ("X",)


def test_members_of_the_body_go_first() -> None:
    def mine(ctx: Any) -> None:
        ctx.set_dim("X@GRAD", (7,))

    class Own(OpDef, type="own"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        scale = Attr(1.0, "Factor.")
        infer_shape = _same_shape

    class OwnGrad(GradOpDef, of=Own, type="own_backward", reads="Out"):
        Out = Input("The result, doubled.", dispensable=True)
        scale = Attr(3.0, "Another factor.")
        more = Attr(0, "One that only the gradient has.")
        inplace = {"Out@GRAD": "X@GRAD"}
        infer_shape = mine

    info = _info(OwnGrad)
    assert info.type == "own_backward" and info.infer_shape is mine
    assert info.proto.inputs["Out"].doc == "The result, doubled." and info.proto.inputs["Out"].dispensable
    assert [(a.name, a.default) for a in info.proto.attrs.values()] == [("scale", 3.0), ("more", 0)]
    assert _made(Own, {"X": 1}, {"Out": 1}).type == "own_backward"


def test_the_forward_ops_own_make_grad_stays() -> None:
    class Still(OpDef, type="still"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        make_grad = empty_grad
        infer_shape = _same_shape

    class StillGrad(GradOpDef, of=Still, reads="X"):
        Elsewhere = Input("Bound by nobody.")

    assert Still.make_grad is empty_grad
    assert [*_info(StillGrad).proto.inputs] == ["X", "Out@GRAD", "Elsewhere"]


def test_a_base_class_declares_a_family() -> None:
    class FromOut(GradOpDef, reads="Out", like="Out"):
        inplace = {"Out@GRAD": "X@GRAD"}

    class One(OpDef, type="one"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        alpha = Attr(1.0, "Factor.")
        infer_shape = _same_shape

    class Two(One, type="two"):
        beta = Attr(2.0, "Factor.")

    class OneGrad(FromOut, of=One):
        pass

    class TwoGrad(OneGrad, of=Two):
        pass

    assert [*_info(OneGrad).proto.attrs] == ["alpha"] and [*_info(TwoGrad).proto.attrs] == ["alpha", "beta"]
    assert [*_info(TwoGrad).proto.inputs] == ["Out", "Out@GRAD"] and _info(TwoGrad).inplace == {"Out@GRAD": "X@GRAD"}
    assert _made(One, {"X": 1}, {"Out": 1}).type == "one_grad"
    assert _made(Two, {"X": 1}, {"Out": 1}).type == "two_grad"


def test_gradients_of_gradients_rename_slots() -> None:
    class Square(OpDef, type="sq"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        infer_shape = _same_shape

    class SquareGrad(GradOpDef, of=Square, reads="X"):
        pass

    class SquareDoubleGrad(
        GradOpDef,
        of=SquareGrad,
        type="sq_double_grad",
        reads="X Out@GRAD X@GRAD@GRAD?",
        like={"Out@GRAD": "X"},
        names={"Out@GRAD": "DOut"},
        grad_names={"X@GRAD": "DDX", "Out@GRAD": "DDOut"},
    ):
        pass

    made = _made(SquareGrad, {"X": 1, "Out@GRAD": 1}, {"X@GRAD": 1})
    assert _bound(made.inputs) == {"X": ("input", "X"), "DOut": ("input", "Out@GRAD"), "DDX": ("output_grad", "X@GRAD")}
    assert _bound(made.outputs) == {"X@GRAD": ("input_grad", "X"), "DDOut": ("input_grad", "Out@GRAD")}
    assert _flags(_info(SquareDoubleGrad).proto.inputs) == {"X": "", "DOut": "", "DDX": "?"}


def test_the_gradient_of_a_linear_ops_gradient_is_the_op() -> None:
    made = _made(TwiceGrad, {"Axis": 1, "Out@GRAD": 1}, {"X@GRAD": 1}, k=1)
    assert (made.type, made.attrs) == ("twice", {"k": 1})
    assert _bound(made.inputs) == {"Axis": ("input", "Axis"), "X": ("output_grad", "X@GRAD")}
    assert _bound(made.outputs) == {"Out": ("input_grad", "Out@GRAD")}


def test_dims_of_what_is_read_are_checked() -> None:
    class Halve(OpDef, type="halve"):
        X = Input("[n].")
        Out = Output("[n / 2].")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", (ctx.dim("X")[0] // 2,))

    class HalveGrad(GradOpDef, of=Halve, reads="X", dims={"Out@GRAD": lambda ctx: (ctx.dim("X")[0] // 2,)}):
        pass

    block = _block(x=([6], "float32", 0), dout=([2], "float32", 0), dx=([], "float32", 0))
    op = OpDesc("halve_grad", {"X": ["x"], "Out@GRAD": ["dout"]}, {"X@GRAD": ["dx"]}, {})
    with pytest.raises(
        InvalidArgumentError, match=r"op halve_grad: Out@GRAD has shape \[2\]; expected \[3\], what the"
    ):
        infer_op(op, block, _info(HalveGrad))


def test_a_slot_may_depend_on_attributes() -> None:
    class Pool(OpDef, type="some_pool"):
        X = Input("Any shape.")
        Out = Output("Shape of X.")
        Index = Output("Which one.", intermediate=True)
        infer_shape = _same_shape

    class PoolGrad(GradOpDef, of=Pool, reads="Index?", shape_of="X", when={"Index": lambda fwd: fwd.attrs["max"]}):
        pass

    assert [*_made(Pool, {"X": 1}, {"Out": 1, "Index": 1}, max=True).inputs] == ["X", "Index", "Out@GRAD"]
    assert [*_made(Pool, {"X": 1}, {"Out": 1, "Index": 1}, max=False).inputs] == ["X", "Out@GRAD"]
