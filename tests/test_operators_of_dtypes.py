"""Operators on eager tensors and on Variables: every operator on every pair of dtypes and numbers, against NumPy.

The rule of dtypes is written out here once more, independently: NumPy's, but that integers take the dtype of a float
beside them, and that they are divided, and meet Python's floats, as float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import layers, to_tensor
from oprack.errors import InvalidArgumentError, KernelNotFoundError

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
OPERATORS = ARITHMETIC | COMPARISONS
NUMBERS = (2, 3.0, 2.5, True)
# what no kernel computes on bool alone, and NumPy refuses in part as well
NOT_ON_BOOL = ("+", "-", "//", "%", "**")


def _values(dtype: str, other: bool = False) -> np.ndarray:
    low = -7 if dtype.startswith(("int", "float")) else 7
    values = np.array([[low, 5, 2], [1, 3, 6]]) if not other else np.array([[2, 3, 2], [1, 3, 4]])
    return (values % 2 if dtype == "bool" and not other else values).astype(dtype)


def _wanted_dtype(sign: str, a: str, b: str) -> str:
    if sign in COMPARISONS:
        return "bool"
    floats = [d for d in (a, b) if d in FLOATS]
    if floats:
        return max(floats, key=FLOATS.index)
    return "float32" if sign == "/" else np.promote_types(a, b).name


def _computed(sign: str, x: Any, y: Any, dtype: str) -> np.ndarray:
    """NumPy's result: exactly, for what the dtype holds exactly."""
    if sign in COMPARISONS:
        return np.asarray(OPERATORS[sign](x, y))
    x, y = np.asarray(x).astype(dtype), np.asarray(y).astype(dtype)
    return np.asarray(OPERATORS[sign](x, y)).astype(dtype)


def _check(sign: str, found: Any, x: Any, y: Any, dtype: str) -> None:
    assert found.dtype == dtype, (sign, x, y)
    rtol = 2e-3 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(found.numpy(), _computed(sign, x, y, dtype), rtol=rtol, err_msg=f"{x!r} {sign} {y!r}")


def test_a_variable_takes_no_array() -> None:
    with oprack.program_guard(oprack.Program()):
        x = layers.data("x", [None, 3])
        with pytest.raises(InvalidArgumentError, match="other operand of variable 'x' is ndarray; expected a Variable"):
            x + np.ones(3)


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("a", DTYPES)
def test_two_tensors(sign: str, a: str) -> None:
    for b in DTYPES:
        x, y = _values(a), _values(b, other=True)
        if a == b == "bool" and sign in NOT_ON_BOOL:
            with pytest.raises(KernelNotFoundError, match="bool"):
                OPERATORS[sign](to_tensor(x), to_tensor(y))
            continue
        dtype = _wanted_dtype(sign, a, b)
        for _ in range(2):  # the second call takes the generated function, if there is one
            _check(sign, OPERATORS[sign](to_tensor(x), to_tensor(y)), x, y, dtype)
        _check(sign, OPERATORS[sign](to_tensor(x), y), x, y, dtype)
        _check(sign, OPERATORS[sign](x, to_tensor(y)), x, y, dtype)


def _beside(sign: str, a: str, number: Any) -> str:
    if sign in COMPARISONS:
        return "bool"
    if a in FLOATS:
        return a
    if sign == "/" or type(number) is float:
        return "float32"
    return "int64" if a == "bool" and type(number) is int else a


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("a", DTYPES)
def test_a_tensor_and_a_number(sign: str, a: str) -> None:
    x = _values(a)
    positive = np.maximum(x, 1).astype(a)
    for number in NUMBERS:
        if a == "bool" and number is True and sign in NOT_ON_BOOL:
            with pytest.raises(KernelNotFoundError, match="bool"):
                OPERATORS[sign](to_tensor(x), number)
            continue
        dtype = _beside(sign, a, number)
        for _ in range(2):
            if not (sign == "**" and number == 2.5):  # negative bases have none
                _check(sign, OPERATORS[sign](to_tensor(x), number), x, number, dtype)
            _check(sign, OPERATORS[sign](number, to_tensor(positive)), number, positive, dtype)
        _check(sign, OPERATORS[sign](np.float64(number) if type(number) is float else number, to_tensor(positive)),
               number, positive, dtype)  # fmt: skip


@pytest.mark.parametrize("sign", OPERATORS)
def test_variables_have_the_dtypes_and_numbers_of_tensors(sign: str) -> None:
    apply = OPERATORS[sign]
    main, feed, outs, eager = oprack.Program(), {}, [], []
    pairs = [("int64", "int64"), ("int32", "int64"), ("uint8", "int8"), ("int32", "float32"), ("float32", "float64")]
    with oprack.program_guard(main, oprack.Program()):
        for i, (a, b) in enumerate(pairs):
            feed |= {f"x{i}": _values(a), f"y{i}": _values(b, other=True)}
            x, y = layers.data(f"x{i}", [2, 3], a), layers.data(f"y{i}", [2, 3], b)
            outs += [apply(x, y), apply(x, 2), apply(3.0, y)]
            p, q = to_tensor(feed[f"x{i}"]), to_tensor(feed[f"y{i}"])
            eager += [apply(p, q), apply(p, 2), apply(3.0, q)]
    found = oprack.Executor().run(main, feed, outs)
    for var, value, wanted in zip(outs, found, eager, strict=True):
        assert var.dtype == wanted.dtype == value.dtype.name
        np.testing.assert_array_equal(value, wanted.numpy())


def test_signs_of_quotients_and_remainders() -> None:
    x, y = np.array([-7, 7, -7, 7]), np.array([2, -2, -2, 2])
    for dtype in ("int32", "int64", "float32", "float64"):
        a, b = to_tensor(x.astype(dtype)), to_tensor(y.astype(dtype))
        assert (a // b).tolist() == [-4, -4, 3, 3] and (a % b).tolist() == [1, -1, -1, 1]
        assert (a / b).tolist() == [-3.5, -3.5, 3.5, 3.5]


def test_large_integers_stay_exact() -> None:
    x = to_tensor([2**53 + 1, 2**40 + 1])
    assert (x + 1).tolist() == [2**53 + 2, 2**40 + 2] and (x * 3).tolist() == [3 * (2**53 + 1), 3 * (2**40 + 1)]
    assert (x == 2**53 + 1).tolist() == [True, False] and (x > 2**53).tolist() == [True, False]
    assert (to_tensor([2**24 + 1]) == float(2**24)).tolist() == [False]
    assert (to_tensor([2**24 + 1]) == to_tensor([float(2**24)])).tolist() == [False]
    assert (to_tensor([3]) ** 39).tolist() == [3**39] and (to_tensor([3]) ** to_tensor([39])).tolist() == [3**39]


def test_numbers_that_the_dtype_does_not_hold() -> None:
    x, i = to_tensor(np.array([200, 3], "uint8")), to_tensor(np.array([1, 2], "int32"))
    for f in (lambda: x + 300, lambda: x * -1, lambda: i + 2**40, lambda: 2**40 - i, lambda: x // 256):
        with pytest.raises(InvalidArgumentError, match=r"expected a number from .*x\.astype\('int64'\)"):
            f()
    assert (x.astype("int64") + 300).tolist() == [500, 303]  # the advice
    assert (i < 2**40).tolist() == [True, True] and (i > -(2**40)).tolist() == [True, True]
    assert (x == 456).tolist() == [False, False] and (2**70 < i).tolist() == [False, False]


def test_integers_to_negative_powers() -> None:
    x = to_tensor([2, 4])
    for f in (lambda: x**-1, lambda: x ** to_tensor([-1, 2]), lambda: 2 ** to_tensor([-1, 2])):
        with pytest.raises(InvalidArgumentError, match=r"fractions.*astype\('float32'\)"):
            f()
    assert (x.astype("float32") ** -1).tolist() == [0.5, 0.25]  # the advice
    assert (x ** to_tensor([-1, 2]).astype("float32")).tolist() == [0.5, 16.0]
    with oprack.program_guard(oprack.Program(), oprack.Program()), pytest.raises(InvalidArgumentError, match="astype"):
        layers.data("n", [2], "int64") ** -2


def test_bool_and_complex() -> None:
    flags, x = to_tensor([True, False]), to_tensor([1.0, 2.0])
    assert (flags * 2).tolist() == [2, 0] and (flags + 1).tolist() == [2, 1] and (flags == 2).tolist() == [False, False]
    with pytest.raises(InvalidArgumentError, match=r"x\.logical_not\(\)"):
        _ = -flags
    assert flags.logical_not().tolist() == [False, True]
    assert (
        (x + 1j).dtype == "complex64"
        and (2j * x).tolist() == [2j, 4j]
        and (x.astype("float64") * 1j).dtype == "complex128"
    )
    assert (x + to_tensor(np.array([1j, 2j]))).dtype == "complex128"


_BITS = [
    *((operator.and_, True), (operator.or_, True), (operator.xor, True)),
    *((operator.lshift, False), (operator.rshift, False)),
]


@pytest.mark.parametrize(("apply", "any_sign"), _BITS, ids=[f.__name__ for f, _ in _BITS])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "int64", "uint64"])
def test_operators_on_the_bits_of_integers(apply: Callable[[Any, Any], Any], any_sign: bool, dtype: str) -> None:
    a, b = np.array([[12, 7, 100, 0]], dtype), np.array([[3], [5]], dtype)
    if any_sign and dtype.startswith("int"):
        a = -a
    x, y = to_tensor(a), to_tensor(b)
    for found, wanted in (
        (apply(x, y), apply(a, b)),
        (apply(x, 3), apply(a, np.array(3, dtype))),
        (apply(5, y), apply(np.array(5, dtype), b)),
        (~x, ~a),
    ):
        assert found.dtype == dtype and found.tolist() == wanted.tolist()
    x, same = to_tensor(a), to_tensor(a)
    x = apply(x, 1)
    assert x.tolist() == apply(a, np.array(1, dtype)).tolist() and same.tolist() == a.tolist()
    with pytest.raises(InvalidArgumentError, match=r"70000000000000000000000 is no "):
        apply(x, 70000000000000000000000)
    with pytest.raises(InvalidArgumentError, match=r"an operand is .*; expected "):
        apply(x, 1.5)
    main = oprack.Program()
    with oprack.program_guard(main, oprack.Program()):
        p = layers.data("p", [1, 4], "int64")
        out = apply(p, 3)
    given = a.astype("int64")
    assert oprack.Executor().run(main, {"p": given}, [out])[0].tolist() == apply(given, 3).tolist()


def test_dtypes_of_two_integers() -> None:
    for one, other, wanted in (
        ("uint8", "int8", "int16"),
        ("uint16", "int8", "int32"),
        ("uint32", "int16", "int64"),
        ("uint16", "uint64", "uint64"),
        ("int32", "int64", "int64"),
    ):
        x, y = to_tensor(np.array([7], one)), to_tensor(np.array([5], other))
        assert (x + y).dtype == wanted and (x + y).tolist() == [12] and (y * x).tolist() == [35]


@pytest.mark.parametrize(("sign", "apply"), [("&", operator.and_), ("|", operator.or_), ("^", operator.xor)])
def test_logic_of_bool(sign: str, apply: Callable[[Any, Any], Any]) -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    x, y = to_tensor(a), to_tensor(b)
    for found, wanted in (
        (apply(x, y), apply(a, b)),
        (apply(x, b), apply(a, b)),
        (apply(a, y), apply(a, b)),
        (apply(x, True), apply(a, True)),
        (apply(False, y), apply(False, b)),
        (~x, ~a),
    ):
        assert found.dtype == "bool" and found.tolist() == wanted.tolist()
    for wrong in (lambda: apply(to_tensor([1.0]), 1), lambda: apply(x, to_tensor([1])), lambda: ~to_tensor([1.0])):
        with pytest.raises(InvalidArgumentError, match=r"expected bool tensors, such as x > 0"):
            wrong()
    main = oprack.Program()
    with oprack.program_guard(main, oprack.Program()):
        p, q = layers.data("p", [4], "bool"), layers.data("q", [4], "bool")
        outs = [apply(p, q), ~p, abs(layers.data("n", [2])), apply(p, True)]
    found = oprack.Executor().run(main, {"p": a, "q": b, "n": np.float32([-1.5, 2])}, outs)
    for value, wanted in zip(found, (apply(a, b), ~a, [1.5, 2.0], apply(a, True)), strict=True):
        assert value.tolist() == np.asarray(wanted).tolist()
    assert abs(to_tensor([-1.5])).tolist() == [1.5] and (+x).tolist() == a.tolist()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_numbers_beside_double_precision_are_not_rounded_to_float32(dtype: str) -> None:
    a = np.array([1.0, 3.0, -2.5]).astype(dtype)
    x = to_tensor(a)
    for number in (0.1, np.float64(0.1), 2.0, 2**30 + 1, 1e300):
        calls: list[Callable[..., Any]] = [
            *(
                lambda v, number=number: v + number,
                lambda v, number=number: number + v,
                lambda v, number=number: v - number,
                lambda v, number=number: number - v,
            ),
            *(
                lambda v, number=number: v * number,
                lambda v, number=number: number * v,
                lambda v, number=number: v / number,
                lambda v, number=number: number / v,
            ),
        ]
        if dtype == "float64":
            calls += [
                lambda v, number=number: abs(v) ** number,
                lambda v, number=number: v % number,
                lambda v, number=number: v > number,
            ]
        for call in calls:
            with np.errstate(over="ignore"):
                found, wanted = call(x), call(a)
            assert found.dtype == wanted.dtype.name and found.shape == wanted.shape
            np.testing.assert_allclose(found.numpy(), wanted, 5e-16, 0)
    assert (to_tensor(np.array(2.0)) * 0.1).shape == ()
    y = to_tensor(np.array([1.0, 3.0]), requires_grad=True)
    ((y * 0.1 + 0.3) ** 1.1).sum().backward()
    assert y.grad is not None
    np.testing.assert_allclose(y.grad.numpy(), 1.1 * (np.array([1.0, 3.0]) * 0.1 + 0.3) ** 0.1 * 0.1, 1e-15)


NUMBERS_BESIDE = (3.0, 0.1, 7, 1e-7, 1e40, 2**53 + 1, True)
DOUBLES = np.array([1.0, 3.0, 1e10, -2.5, 0.7])
LONGS = np.array([2**53 + 1, 3, -7, 2**31 + 5])


def _result(function: Callable[[Any], Any], x: np.ndarray) -> Any:
    """An array, or the class of the error."""
    try:
        return function(to_tensor(x)).numpy()
    except InvalidArgumentError as error:
        return type(error)


@pytest.mark.parametrize("array", [DOUBLES, LONGS], ids=["float64", "int64"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_program_computes_with_numbers_as_precise_as_eager_calls_do(name: str, array: np.ndarray) -> None:
    """Attributes are float32: a number or a reciprocal that they would round is a tensor in programs."""
    for number in NUMBERS_BESIDE:
        for function in (lambda x, n=number: OPERATORS[name](x, n), lambda x, n=number: OPERATORS[name](n, x)):
            eager, program = _result(function, array), _result(oprack.jit(function), array)
            if isinstance(eager, np.ndarray):
                np.testing.assert_array_equal(program, eager, f"{name} {number!r}", strict=True)


@pytest.mark.parametrize(
    ("function", "wanted", "array"),
    [
        (lambda x: x / 3.0, DOUBLES / 3.0, DOUBLES),
        (lambda x: x / 0.1, DOUBLES / 0.1, DOUBLES),
        (lambda x: x.std(), DOUBLES.std(ddof=1), DOUBLES),
        (lambda x: x.var(), DOUBLES.var(ddof=1), DOUBLES),
        (lambda x: x.clip(-0.1, 0.3), DOUBLES.clip(-0.1, 0.3), DOUBLES),
        (lambda x: oprack.clip(x, max=0.3), DOUBLES.clip(None, 0.3), DOUBLES),
        (lambda x: x.clip(0, 2**53 + 1), LONGS.clip(0, 2**53 + 1), LONGS),
        (lambda x: oprack.clip(x, -(2**53 + 1), 5), LONGS.clip(-(2**53 + 1), 5), LONGS),
        (lambda x: oprack.clip(x, 0, 10**30), LONGS.clip(0), LONGS),
        (lambda x: oprack.full_like(x, 0.1), np.full_like(DOUBLES, 0.1), DOUBLES),
        (lambda x: oprack.full_like(x, 2**53 + 1), np.full_like(LONGS, 2**53 + 1), LONGS),
    ],
)
def test_numbers_are_as_precise_as_the_dtype(function: Any, wanted: np.ndarray, array: np.ndarray) -> None:
    for path in (function, oprack.jit(function)):
        np.testing.assert_allclose(_result(path, array), wanted, rtol=2.3e-16 if array.dtype.kind == "f" else 0, atol=0)
