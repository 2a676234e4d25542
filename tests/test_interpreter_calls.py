"""oprack.functional: arguments, attributes, outputs, errors, the generated functions, and what is put around them."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading

import numpy as np
import oprack
import pytest
from oprack import Program, Tensor, layers, program_guard, to_tensor
from oprack import functional as F
from oprack.errors import (
    AttributeValueError,
    InvalidArgumentError,
    NanInfError,
    NotFoundError,
    UnknownOpError,
)
from oprack.functional.op_function import op_function
from oprack.interpreter import check_finite, log_calls, static_mode
from oprack.kernel import kernel
from oprack.op import GradOp, op
from oprack.packs.manager import default_manager

A = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def test_functions_document_themselves() -> None:
    assert list(inspect.signature(F.softmax).parameters) == ["x", "axis"]
    assert list(inspect.signature(F.scale).parameters)[:2] == ["x", "scale_tensor"]
    assert "axis: " in F.softmax.__doc__ and F.softmax.__name__ == "softmax"
    assert {"relu", "conv2d", "softmax"} <= set(dir(F))


def test_slots_and_attributes() -> None:
    x, y = to_tensor(A), to_tensor(A[:1])
    np.testing.assert_allclose(F.elementwise_add(x=x, y=y).numpy(), A + A[:1])
    np.testing.assert_allclose(F.concat([x, y], axis=0).numpy(), np.concatenate([A, A[:1]]))
    np.testing.assert_allclose(F.scale(x, scale=to_tensor(2.0)).numpy(), 2 * A)
    np.testing.assert_allclose(F.scale(x, to_tensor(np.float32([3]))).numpy(), 3 * A)
    assert F.cast(x, in_dtype="float32", out_dtype="int64").dtype == "int64"
    np.testing.assert_allclose(F.relu(A).numpy(), np.maximum(A, 0))
    assert F.reshape2(x, shape=np.array([4, 3])).shape == F.reshape2(x, shape=[to_tensor(4), 3]).shape == (4, 3)
    assert F.scale(x, scale=np.float32(2.0)).shape == (3, 4)
    assert F.fill_constant(shape=[2], dtype="float64", value=1.5).numpy().tolist() == [1.5, 1.5]


def test_attributes_that_are_equal_but_not_the_same() -> None:
    zero, x = to_tensor(np.zeros(1, np.float32)), to_tensor(np.ones(1, np.float32))
    assert np.signbit(F.scale(x, scale=-0.0).numpy()) and not np.signbit(F.scale(x, scale=0.0).numpy())
    assert F.scale(zero, scale=1.0, bias=1.0).numpy() == 1


def test_results() -> None:
    x = to_tensor(A)
    values, indices = F.top_k_v2(x, k=2)
    assert values.shape == (3, 2) and indices.dtype == "int64"
    assert F.top_k_v2(x, k=2).indices.shape == (3, 2)
    assert [p.shape for p in F.split(x, num=2, axis=1)] == [(3, 2)] * 2
    assert [p.shape for p in F.split(x, sections=[1, 3], axis=1)] == [(3, 1), (3, 3)]
    assert len(F.unbind(x, axis=0)) == 3 and len(F.unbind(x, axis=1)) == 4
    assert F.reshape2(x, shape=[4, 3]).shape == (4, 3)
    assert F.dropout(x, dropout_prob=0.0).shape == (3, 4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.relux(x), UnknownOpError, "did you mean relu"),
        (lambda x: x.relux(), AttributeError, r"no attribute or op 'relux' \(did you mean relu"),
        (lambda x: F.softmax(x, axs=1), InvalidArgumentError, "no attribute 'axs'; expected axis"),
        (lambda x: F.softmax(x, axis="a"), AttributeValueError, "attribute 'axis' is 'a'"),
        (lambda x: F.relu(3), InvalidArgumentError, "expected a tensor or an array"),
        (lambda x: F.relu(None), InvalidArgumentError, "x is missing"),
        (lambda x: F.matmul_v2(x, x), InvalidArgumentError, "4 columns"),
        (lambda x: F.elementwise_add(x, x.astype("float64")), InvalidArgumentError, "cast one of them"),
        (lambda x: F.unstack(x, num_outputs={"Z": 2}), InvalidArgumentError, "num_outputs"),
        (lambda x: F.matmul_v2(x, x, in_place=True), InvalidArgumentError, "declares, which are none"),
        (
            lambda x: F.conditional_block([x], [x], num_outputs={"Out": 1}, sub_block=0),
            InvalidArgumentError,
            "Python's own if",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, error, text: str) -> None:
    with pytest.raises(error, match=text):
        call(to_tensor(A))


def test_errors_name_the_line_and_come_also_from_generated_functions() -> None:
    x = to_tensor(A)
    F.matmul_v2(x, to_tensor(np.ones((4, 2), np.float32)))
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="4 columns") as caught:
            F.matmul_v2(x, to_tensor(np.ones((3, 2), np.float32)))
        assert "test_interpreter_calls.py" in str(caught.value)


def test_a_function_is_generated_once_for_a_kind() -> None:
    x = to_tensor(A)
    op_function("tanh").table.clear()
    F.tanh(x)
    calls = len(op_function("tanh").table)
    F.tanh(to_tensor(A[:2]))
    F.tanh(to_tensor(np.ones(5, np.float32)))
    assert len(op_function("tanh").table) == calls
    F.tanh(to_tensor(A.astype(np.float64)))
    assert len(op_function("tanh").table) == calls + 1


def test_new_packs_are_seen() -> None:
    manager = default_manager()
    definition = (
        op("interpreter_test_triple")
        .doc("$$y = k x$$")
        .input("x", "A tensor.")
        .output("y", "Of the shape of x.")
        .attr("k", 3.0, "Factor.")
        .infer_shape(lambda ctx: ctx.set_dim("y", ctx.dim("x")))
        .grad(
            lambda fwd: GradOp(fwd.type, slots={"x": fwd.output_grad("y"), "y": fwd.input_grad("x")}, attrs=fwd.attrs)
        )
        .definition()
    )
    with pytest.raises(UnknownOpError):
        F.interpreter_test_triple(to_tensor(A))
    with oprack.use_manager(type(manager)()) as own:
        own.register_op(definition)

        @kernel("interpreter_test_triple", dtypes={"float32", "float64"})
        def triple(x, *, k):
            return x * x.dtype.type(k)

        own.register_kernel(triple)
        np.testing.assert_allclose(F.interpreter_test_triple(to_tensor(A)).numpy(), 3 * A)
        assert not oprack.gradcheck(lambda x: F.interpreter_test_triple(x, k=2.0) * x, [A], order=2)
    with pytest.raises(UnknownOpError):
        F.interpreter_test_triple(to_tensor(A))


def test_variables_append_to_their_program() -> None:
    main, startup = Program(), Program()
    with program_guard(main, startup):
        x = layers.data("x", [None, 4])
        y = F.softmax(F.relu(x), axis=-1)
        parts = F.split(y, num=2, axis=1)
        with static_mode():
            constant = F.fill_constant(shape=[1], dtype="float32", value=2.0)
        eager = F.fill_constant(shape=[1], dtype="float32", value=2.0)
    assert [o.type for o in main.global_block().ops] == ["relu", "softmax", "split", "fill_constant"]
    assert parts[0].shape == (-1, 2) and constant.name and isinstance(eager, Tensor)
    (found,) = oprack.Executor().run(main, {"x": A}, [y])
    np.testing.assert_allclose(found, F.softmax(F.relu(to_tensor(A)), axis=-1).numpy(), rtol=1e-6)
    with program_guard(main, startup):
        count = len(main.global_block().ops)
        number = layers.data("n", [1], "int32")
        tiled = F.tile(x, repeat_times=[number, 2])
        assert [o.type for o in main.global_block().ops[count:]] == ["fill_constant", "tile"]
    (found,) = oprack.Executor().run(main, {"x": A, "n": np.int32([3])}, [tiled])
    np.testing.assert_array_equal(found, np.tile(A, [3, 2]))
    with program_guard(main, startup), pytest.raises(InvalidArgumentError, match="to_program"):
        F.elementwise_add(x, to_tensor(A))


def test_random_ops_go_on_from_a_seed() -> None:
    x = to_tensor(np.ones((50, 50), np.float32))
    draws = []
    for _ in range(2):
        oprack.seed(7)
        draws.append([F.dropout(x, dropout_prob=0.5).numpy() for _ in range(2)])
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0][0] != draws[0][1]).any()


def test_infinities_are_values_whatever_numpy_is_told() -> None:
    x = to_tensor(np.zeros(3, np.float32))
    for _ in range(2):  # warnings are errors here
        assert np.isneginf(F.log(x).numpy()).all()
    with np.errstate(all="raise"):
        assert np.isneginf(F.log(x).numpy()).all()


def test_infinities_are_no_warnings() -> None:
    code = (
        "import numpy as np, oprack; x = oprack.to_tensor(np.zeros(3, 'f4')); print([x.log().sum() for _ in range(3)])"
    )
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "-inf" in done.stdout and done.stderr == ""


def test_checks_for_nan() -> None:
    x = to_tensor(np.float32([-1, 1]), requires_grad=True)
    with check_finite(), pytest.raises(NanInfError, match=r"op log: 1 of 2 .* float32\[2\]"):
        F.log(x)
    with pytest.raises(NanInfError, match="op sqrt_grad"):
        y = F.sqrt(to_tensor(np.float32([0.0]), requires_grad=True)).sum()
        with check_finite():
            y.backward()


def test_calls_are_recorded_and_timed() -> None:
    x = to_tensor(A, requires_grad=True)
    with log_calls() as calls, oprack.Profiler() as profiler:
        x.relu().sum().backward()
    assert [c.op_type for c in calls] == ["relu", "reduce_sum", "reduce_sum_grad", "relu_grad"]
    assert calls[0].inputs == ("tensor float32[3, 4]",)
    assert {row["op"] for row in profiler.by_op()} == {"relu", "reduce_sum", "reduce_sum_grad", "relu_grad"}


def test_one_profiler_sees_eager_calls_and_programs() -> None:
    net = oprack.nn.Linear(4, 2)
    sgd = oprack.optimizer.SGD(0.1, parameter_list=net.parameters())
    fast = oprack.jit(lambda x: x.tanh())
    fast(to_tensor(A))
    with oprack.Profiler() as outer:
        for _ in range(3):  # the first call is recorded, the others are generated code
            net(to_tensor(A)).sum().backward()
        sgd.step()
        with oprack.Profiler() as inner:
            to_tensor(A).relu()
            fast(to_tensor(A))
            oprack.to_program(lambda x: x.sigmoid(), [oprack.InputSpec([None, 4])])
    to_tensor(A).relu()
    counts = {row["op"]: row["calls"] for row in outer.by_op()}
    forward = dict.fromkeys(("matmul_v2", "elementwise_add", "reduce_sum"), 3)
    backward = dict.fromkeys(("matmul_v2_grad", "elementwise_add_grad", "reduce_sum_grad"), 3)
    assert counts == forward | backward | {"sgd": 2, "fill_constant": 1}  # which makes the learning rate
    assert {row["op"]: row["calls"] for row in inner.by_op()} == {"relu": 1, "tanh": 1}


def test_mixed_precision() -> None:
    w = to_tensor(np.random.default_rng(0).standard_normal((4, 4)), dtype="float32", requires_grad=True)
    with oprack.amp.autocast("bfloat16"):
        product = w @ w
        probabilities = F.softmax(product)
    assert (product.dtype, probabilities.dtype) == ("bfloat16", "float32")
    (probabilities * probabilities).sum().backward()
    assert w.grad.dtype == "float32"
    with pytest.raises(InvalidArgumentError, match="bfloat16 or float16"):
        oprack.amp.autocast("float32")


def test_threads_share_generated_functions() -> None:
    x, found, errors = to_tensor(A, requires_grad=True), [], []

    def work() -> None:
        try:
            for _ in range(30):
                (g,) = oprack.grad((F.tanh(x) * x).sum(), [x])
            found.append(g.numpy())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    for g in found[1:]:
        np.testing.assert_array_equal(g, found[0])


def test_unfinished_definitions() -> None:
    with pytest.raises(oprack.errors.DefinitionError, match=r"an output.*the shape rule"):
        op("x").input("x").definition()
    with pytest.raises(oprack.errors.AlreadyExistsError, match="twice"):
        op("x").input("x").output("x")


def test_missing_state() -> None:
    with pytest.raises(NotFoundError, match="has no weight"):
        oprack.nn.Linear(2, 2).set_state_dict({"bias": np.zeros(2)})


def test_code_goes_with_the_functions_that_it_was_made_for() -> None:
    import gc
    import linecache

    def count() -> int:
        gc.collect()
        return sum(name.startswith("<eager") for name in linecache.cache)

    x = to_tensor(A)
    F.unbind(x, axis=0)
    before = count()
    for rows in (2, 3, 2, 3):
        assert len(F.unbind(to_tensor(A[:rows]), axis=0)) == rows
    assert count() <= before + 1
    F.cumsum(x, axis=0)
    with_one = count()
    op_function("cumsum")._exprs.clear()
    op_function("cumsum").table.clear()
    assert count() == with_one - 1
