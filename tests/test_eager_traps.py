"""What users of PyTorch and of Paddle 2 write by habit: it works, or the error's advice does, which is run here."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import layers, nn, to_tensor
from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError

A = np.arange(6, dtype=np.float32).reshape(2, 3)
Z = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
I = np.array([1, 5, 9])  # noqa: E741


# Attributes by position ----------------------------------------------------------------------------------------------
CALLS: dict[str, tuple[str, Any]] = {
    "F.clip(x, 1, 3)": ("clip(x, min=1, max=3)", np.clip(A, 1, 3)),
    "F.tile(x, [2, 1])": ("tile(x, repeat_times=[2, 1])", np.tile(A, [2, 1])),
    "F.pow(x, 2)": ("pow(x, factor=2)", A**2),
    "F.reduce_sum(x, 0)": ("reduce_sum(x, dim=[0])", A.sum(0)),
    "F.reduce_sum(x, [0], True)": ("reduce_sum(x, dim=[0], keep_dim=True)", A.sum(0, keepdims=True)),
    "F.transpose2(x, [1, 0])": ("transpose2(x, axis=[1, 0])", A.T),
    "F.reshape2(x, [3, 2])": ("reshape2(x, shape=[3, 2])", A.reshape(3, 2)),
    "F.gather(x, i01, 1)": ("gather(x, index, axis=1)", A[:, [0, 1]]),
    "F.concat([x, x], 1)": ("concat(x, axis=1)", np.concatenate([A, A], 1)),
    "F.cumsum(x, 0)": ("cumsum(x, axis=0)", A.cumsum(0)),
    "F.leaky_relu(x, 0.5)": ("leaky_relu(x, alpha=0.5)", A),
    "F.elementwise_add(x, x, -1)": ("elementwise_add(x, y, axis=-1)", A + A),
    "F.fill_constant([2], 'float32', 1.5)": (
        "fill_constant(shape=[2], dtype='float32', value=1.5)",
        np.full(2, 1.5, np.float32),
    ),
}


def _evaluated(text: str) -> Any:
    return eval(text, {"F": F, "x": to_tensor(A), "i01": to_tensor([0, 1]), "oprack": oprack})


@pytest.mark.parametrize("call", CALLS)
def test_an_attribute_by_position_is_an_error_whose_proposal_runs(call: str) -> None:
    advice, wanted = CALLS[call]
    with pytest.raises(InvalidArgumentError, match=r"attributes go by keyword: ") as caught:
        _evaluated(call)
    proposed = str(caught.value).partition("attributes go by keyword: ")[2].splitlines()[0]
    assert proposed == advice
    inputs = {"x": "[x, x]" if "concat" in call else "x", "y": "x", "index": "i01"}
    runs = re.sub(r"\b(x|y|index)\b", lambda m: inputs[m[1]], proposed)
    np.testing.assert_allclose(_evaluated(f"F.{runs}").numpy(), wanted, rtol=1e-6)


def test_a_required_attribute_that_is_missing_shows_in_the_proposal() -> None:
    x = to_tensor(A)
    with pytest.raises(InvalidArgumentError, match=r"cast\(x, out_dtype='int32', in_dtype='float32'\)"):
        F.cast(x, "int32")
    np.testing.assert_array_equal(F.cast(x, out_dtype="int32", in_dtype="float32").numpy(), A.astype(np.int32))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("F.split(x, 3, 1)", "attributes go by keyword: split(x, num=3, axis=1)"),
        ("F.split(x, [1, 2], 1)", "attributes go by keyword: split(x, sections=[1, 2], axis=1)"),
        ("F.split(x, 7, 9)", "attributes go by keyword: split(x, axis_tensor=None, sections_tensor_list=None, *, "),
        ("F.slice(x, [0], [0], [1])", "attributes go by keyword: slice(input, axes=[0], starts=[0], ends=[1])"),
        ("F.relu(x, 3)", "op relu takes 1 input, x; got 3 besides; the op has no attributes"),
        ("F.p_norm(x, INF, 1)", "attributes go by keyword: p_norm(x, porder=float('inf'), axis=1)"),
    ],
)
def test_a_proposal_is_a_call_that_the_op_takes_or_says_how_it_is_called(call: str, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(words)):
        eval(call, {"F": F, "x": to_tensor(A), "INF": float("inf")})


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            "F.elementwise_add(x, 2)",
            r"y is 2 \(int\); expected a tensor or an array; oprack\.to_tensor\(2, 'float32'\)",
        ),
        ("F.relu([1.0, -2.0])", r"x is \[1\.0, -2\.0\] \(list\); .*; oprack\.to_tensor\(\[1\.0, -2\.0\]\) makes one"),
    ],
)
def test_a_number_for_a_tensor(call: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text) as caught:
        _evaluated(call)
    proposed = re.findall(r"(oprack\.to_tensor\(.*?\)) makes one", str(caught.value))[0]
    plain = re.findall(r"is (.*) \(", str(caught.value))[0]
    assert isinstance(_evaluated(call.replace(plain, proposed)), oprack.Tensor)


@pytest.mark.parametrize("value", ["a", object(), len])
def test_what_is_no_tensor_at_all(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"op relu: x is .*; expected a tensor or an array$"):
        F.relu(value)


def test_positions_in_programs() -> None:
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x = layers.data("x", [2, 3])
        with pytest.raises(InvalidArgumentError, match=r"attributes go by keyword: leaky_relu\(x, alpha=0\.5\)"):
            F.leaky_relu(x, 0.5)
        with pytest.raises(InvalidArgumentError, match=r"op relu takes 1 input, x; got 3 besides"):
            F.relu(x, 3)


def test_calls_that_can_only_be_paddle_2s() -> None:
    x, labels = to_tensor(A), to_tensor([0, 2])
    np.testing.assert_array_equal(F.one_hot(labels, 3).numpy(), np.eye(3)[[0, 2]])
    np.testing.assert_array_equal(F.one_hot(labels, num_classes=3).numpy(), np.eye(3)[[0, 2]])
    kept = F.dropout(to_tensor(np.ones(1000, np.float32)), 0.5).numpy()
    assert set(kept.tolist()) == {0.0, 2.0}  # scaled in training, as Paddle 2 and PyTorch do
    centred = (A - A.mean(1, keepdims=True)) / np.sqrt(A.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(F.layer_norm(x, [3]).numpy(), centred, rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidArgumentError, match=r"op layer_norm: bias is 0\.5 \(float\)"):
        F.layer_norm(x, x, 0.5)  # no call of either, so the op answers


# Methods with the signatures of Paddle 2 -----------------------------------------------------------------------------
METHODS: list[tuple[Any, Any]] = [
    (lambda x: x.clip(1, 3), np.clip(A, 1, 3)),
    (lambda x: x.clip(min=1.5), np.maximum(A, 1.5)),
    (lambda x: x.clip(max=2), np.minimum(A, 2)),
    (lambda x: x.tile([2, 1]), np.tile(A, [2, 1])),
    (lambda x: x.tile(2, 1), np.tile(A, [2, 1])),
    (lambda x: x.tile(repeat_times=[2, 1]), np.tile(A, [2, 1])),
    (lambda x: x.pow(2), A**2),
    (lambda x: x.pow(factor=2.0), A**2),
    (lambda x: x.sum(0), A.sum(0)),
    (lambda x: x.mean(-1, True), A.mean(-1, keepdims=True)),
    (lambda x: x.max(1), A.max(1)),
    (lambda x: x.min([0, 1]), A.min()),
    (lambda x: x.reshape(3, 2), A.reshape(3, 2)),
    (lambda x: x.reshape([3, 2]), A.reshape(3, 2)),
    (lambda x: x.reshape(shape=[3, 2]), A.reshape(3, 2)),
    (lambda x: x.unsqueeze(0).unsqueeze(axis=1), A[None, None]),
    (lambda x: x.unsqueeze([0, 1]).squeeze(axis=0).squeeze(0), A),
    (lambda x: x.expand(2, 2, 3), np.broadcast_to(A, (2, 2, 3))),
    (lambda x: x.expand([4, -1, -1]), np.broadcast_to(A, (4, 2, 3))),
    (lambda x: x.split(3, 1)[2], A[:, 2:]),
    (lambda x: x.split([1, -1], axis=1)[1], A[:, 1:]),
    (lambda x: x.split(num=3, axis=-1)[0], A[:, :1]),
    (lambda x: x.unbind(1)[2], A[:, 2]),
    (lambda x: x.gather(to_tensor([2, 0]), 1), A[:, [2, 0]]),
    (lambda x: x.gather(to_tensor([1])), A[[1]]),
    (lambda x: x.softmax(0), np.exp(A - A.max(0)) / np.exp(A - A.max(0)).sum(0)),
    (lambda x: x.cast("int64"), A.astype(np.int64)),
    (lambda x: x.T, A.T),
    (lambda x: x.transpose(1, 0), A.T),
    (lambda x: x.transpose([1, 0]), A.T),
    (lambda x: x.transpose(perm=[0, 1]), A),
]


@pytest.mark.parametrize("number", range(len(METHODS)))
def test_methods_eagerly_and_in_programs(number: int) -> None:
    call, wanted = METHODS[number]
    np.testing.assert_allclose(call(to_tensor(A)).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(oprack.jit(call)(to_tensor(A)).numpy(), wanted, rtol=1e-6)


def test_clip_of_integers_and_by_tensors() -> None:
    large = np.array([2**60 + 1, -(2**60) - 1, 7])
    assert to_tensor(large).clip(0).tolist() == [2**60 + 1, 0, 7]
    assert to_tensor(I).clip(2, 6).tolist() == [2, 5, 6] and to_tensor(I).clip(max=6).tolist() == [1, 5, 6]
    np.testing.assert_array_equal(to_tensor(A).clip(max=to_tensor([2.0])).numpy(), np.minimum(A, 2))
    with pytest.raises(InvalidArgumentError, match="expected a number for at least one"):
        to_tensor(A).clip()


def test_transpose_of_two_numbers_swaps() -> None:
    z = to_tensor(Z)
    for a, b in ((0, 2), (1, 2), (-1, 0), (1, 1)):
        np.testing.assert_array_equal(z.transpose(a, b).numpy(), np.swapaxes(Z, a, b))
    np.testing.assert_array_equal(z.transpose(2, 0, 1).numpy(), Z.transpose(2, 0, 1))
    np.testing.assert_array_equal(z.transpose().numpy(), Z.T)
    with pytest.raises(InvalidArgumentError, match="expected two of its 3 dims"):
        z.transpose(0, 3)
    # two dims in their order: PyTorch swaps them, NumPy does nothing
    for a, b in ((0, 1), (-2, -1)):
        with pytest.raises(InvalidArgumentError, match=rf"x\.T, or keep their order with x\.transpose\(\[{a}, {b}\]\)"):
            to_tensor(A).transpose(a, b)
        np.testing.assert_array_equal(to_tensor(A).transpose([a, b]).numpy(), A)


def test_format() -> None:
    assert f"{to_tensor([1.23456]):.3f}" == "1.235" and f"{to_tensor([1])}" == str(to_tensor([1]))


# Places and dtypes as strings ----------------------------------------------------------------------------------------
def test_places_and_dtypes_as_strings() -> None:
    x, net = to_tensor(A), nn.Linear(3, 2)
    assert x.to("float64").dtype == "float64" and x.to("cpu") is x and x.to(dtype="int32").dtype == "int32"
    assert x.to(np.float64).dtype == "float64" and x.to("cpu", "float64").dtype == "float64"
    assert to_tensor(A, place="cpu").place == oprack.CPUPlace()
    assert net.to("float64") is net and {p.dtype for p in net.parameters()} == {"float64"}
    assert net.to("cpu").to(place="cpu", dtype="float32").weight.dtype == "float32"
    w = to_tensor(A, requires_grad=True)
    w.to("float64").sum().backward()
    assert w.grad.dtype == "float32"


@pytest.mark.parametrize(
    "move", [lambda t: t.to("nowhere"), lambda t: t.to(0), lambda t: t.to("cuda:x"), lambda t: t.to("cpu:")]
)
def test_neither_place_nor_dtype(move: Any) -> None:
    for owner in (to_tensor(A), nn.Linear(2, 2)):
        with pytest.raises(
            InvalidArgumentError, match=r'expected a place \("cpu", "cuda", "cuda:1" or a Place\) or a dt'
        ):
            move(owner)
    with pytest.raises(InvalidArgumentError, match='its name: "cpu"'):
        to_tensor(A, place="nowhere")


def test_a_place_that_nothing_serves() -> None:
    if "cuda" not in oprack.default_manager().place_kinds("relu"):
        for f in (
            lambda: to_tensor(A).to("cuda"),
            lambda: nn.Linear(2, 2).to("gpu:0"),
            lambda: to_tensor(A, place="cuda"),
        ):
            with pytest.raises(NotFoundError, match="cuda"):
                f()


# Losses --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["cross_entropy", "cross_entropy2"])
def test_cross_entropy_of_logits(op: str) -> None:
    logits, label = np.array([[2.0, -1.0], [0.5, -3.0]], np.float32), np.array([[1], [0]])
    function = getattr(F, op)
    first = (lambda y: y) if op == "cross_entropy" else (lambda y: y.y if hasattr(y, "y") else y)
    for _ in range(2):
        with pytest.raises(
            InvalidArgumentError, match=r"X holds .*; expected probabilities, .*oprack\.nn\.CrossEntropyLoss\(\)"
        ):
            function(to_tensor(logits), to_tensor(label))
    exponents = np.exp(logits)
    wanted = -np.log(exponents / exponents.sum(1, keepdims=True))[[0, 1], label[:, 0]]
    np.testing.assert_allclose(
        first(function(F.softmax(to_tensor(logits)), to_tensor(label))).numpy()[:, 0], wanted, rtol=1e-5
    )
    np.testing.assert_allclose(
        float(nn.CrossEntropyLoss()(to_tensor(logits), to_tensor(label))), wanted.mean(), rtol=1e-5
    )
    found = F.softmax_with_cross_entropy(to_tensor(logits), to_tensor(label)).loss
    np.testing.assert_allclose(found.numpy()[:, 0], wanted, rtol=1e-5)
    assert np.isnan(first(function(to_tensor(np.full((2, 2), np.nan, np.float32)), to_tensor(label))).numpy()).all()


def test_cross_entropy_of_soft_labels_and_logits() -> None:
    logits, label = to_tensor(np.array([[2.0, -1.0]], np.float32)), to_tensor(np.array([[0.5, 0.5]], np.float32))
    with pytest.raises(InvalidArgumentError, match="expected probabilities"):
        F.cross_entropy(logits, label, soft_label=True)


def test_losses_of_two_shapes_warn() -> None:
    x, y = to_tensor(np.ones((4, 1), np.float32)), to_tensor(np.ones(4, np.float32))
    for loss in (nn.MSELoss(), nn.L1Loss()):
        with pytest.warns(UserWarning, match=r"has shape \[4, 1\] and label \[4\]") as caught:
            loss(x, y)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loss(x, y.reshape(x.shape))  # the advice
            oprack.to_program(
                lambda a, b, loss=loss: loss(a, b), [oprack.InputSpec([None, 1]), oprack.InputSpec([4, 1])]
            )


def test_the_difference_of_dropout_is_documented() -> None:
    assert "upscale_in_train" in F.dropout.__doc__ and "nn.Dropout" in F.dropout.__doc__
    assert "CrossEntropyLoss" in F.cross_entropy.__doc__


# Eager tensors and programs ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("call", [lambda x: layers.mean(x), lambda x: layers.fc(x, 3), lambda x: layers.concat([x, x])])
def test_layers_with_eager_tensors(call: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"tensor float32\[2, 3\].*an eager tensor: .*oprack\.functional\.<op>"
    ):
        call(to_tensor(A))


def test_an_eager_tensor_beside_a_variable() -> None:
    x = to_tensor(A)
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        v = layers.data("v", [2, 3])
        for f in (lambda: v + x, lambda: x + v, lambda: F.elementwise_add(v, x)):
            with pytest.raises(InvalidArgumentError, match=r"oprack\.layers\.assign\(x\.numpy\(\)\)"):
                f()
        assert (v + layers.assign(x.numpy())).shape == (2, 3)  # the advice


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.numpy(),
        float,
        int,
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: [1, 2][x],
        np.asarray,
        np.sum,
        lambda x: f"{x:.2f}",
        lambda x: x.backward(),
    ],
)
def test_values_inside_jit(use: Any) -> None:
    for trace in (lambda f: oprack.jit(f)(to_tensor([1.0])), lambda f: oprack.to_program(f, [oprack.InputSpec([1])])):
        with pytest.raises(PreconditionNotMetError, match=r"no value while oprack\.jit or oprack\.to_program writes"):
            trace(use)


def test_a_tensor_in_the_place_of_one_number_is_an_error() -> None:
    """`concat(x, y)` gives y as the axis; what joins both is `concat([x, y])`."""
    x = oprack.to_tensor(np.ones((6, 4), np.float32))
    with pytest.raises(InvalidArgumentError, match=r"AxisTensor has shape \[6, 4\]; expected a tensor of one element"):
        F.concat(x, x)
    assert F.concat([x, x]).shape == (12, 4)
    one = oprack.to_tensor(np.array([1], np.int32))
    assert F.concat([x, x], one).shape == (6, 8)
    none = oprack.to_tensor(np.zeros(0, np.int32))
    with pytest.raises(InvalidArgumentError, match=r"K has shape \[0\]"):
        F.top_k_v2(x, none)
    two = oprack.to_tensor(np.array([3, 4], np.int32))
    with pytest.raises(InvalidArgumentError, match=r"ShapeTensor\[1\] has shape \[2\]; expected .* one element"):
        F.reshape2(x, shape_tensor=[one, two])
    image = oprack.to_tensor(np.ones((1, 1, 2, 2), np.float32))
    with pytest.raises(InvalidArgumentError, match=r"SizeTensor\[0\] has shape \[2\]; expected .* one element"):
        F.nearest_interp_v2(image, size_tensor=[two, one])
    assert F.nearest_interp_v2(image, size_tensor=[one, one]).shape == (1, 1, 1, 1)


def test_a_tensor_overrides_an_attribute_that_does_not_fit() -> None:
    x, shape = oprack.to_tensor(np.arange(24.0)), oprack.to_tensor(np.array([4, -1], np.int32))
    assert F.reshape2(x, shape_input=shape, shape=[3, 3]).shape == (4, 6)
