"""Arrays that are not as kernels take them are converted at every entrance, or refused with FeedDtypeError."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import FeedDtypeError, InvalidArgumentError
from oprack.io import save_inference_model
from oprack.kernel import kernel
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope, plain_array

X = np.arange(12, dtype=np.float32).reshape(3, 4) + 1


class Offset(np.ndarray):
    """An ndarray whose operators mean something else."""

    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) * 0


def read_only() -> np.ndarray:
    array = X.copy()
    array.flags.writeable = False
    return array


def matrix() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(X)


ODD: dict[str, Callable[[], Any]] = {
    "big-endian": lambda: X.astype(">f4"),
    "big-endian and strided": lambda: np.repeat(X, 2, 1).astype(">f4")[:, ::2],
    "read-only": read_only,
    "strided": lambda: np.repeat(X, 2, 0)[::2],
    "reversed": lambda: X[::-1].copy()[::-1],
    "transposed": lambda: np.asfortranarray(X),
    "broadcast": lambda: np.broadcast_to(X, (3, 4)),
    "matrix": matrix,
    "subclass": lambda: X.view(Offset),
    "masked nowhere": lambda: np.ma.array(X),
    "offset by a byte": lambda: np.frombuffer(b"\0" + X.tobytes(), np.float32, offset=1).reshape(X.shape),
}
SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def watching(rack: PackManager) -> None:
    SEEN.clear()

    @kernel("double", priority=1)
    def watched(X: Any, *, factor: float) -> Any:
        SEEN.append(X)
        return X * np.asarray(factor, X.dtype)

    rack.register_kernel(watched)


@pytest.fixture
def program(build: Callable[..., Program]) -> Program:
    return build({"x": X}, [("double", {"X": "x"}, {"Out": "y"})])


@pytest.fixture
def predictor(program: Program, tmp_path: Path) -> oprack.inference.Predictor:
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], Scope())
    config = oprack.inference.Config(f"{tmp_path / 'm'}.pdmodel", f"{tmp_path / 'm'}.pdiparams")
    return oprack.inference.create_predictor(config)


def entrances(program: Program, predictor: oprack.inference.Predictor) -> dict[str, Callable[[Any], Any]]:
    def by_handle(share: bool) -> Callable[[Any], Any]:
        def go(value: Any) -> Any:
            handle = predictor.get_input_handle("x")
            (handle.share_external_data if share else handle.copy_from_cpu)(value)
            predictor.run()
            return predictor.get_output_handle("y").copy_to_cpu()

        return go

    def by_scope(value: Any) -> Any:
        scope = Scope()
        scope.var("x").set(value)
        program.global_block().vars["x"].persistable = True
        return Executor().run(program, {}, ["y"], scope)[0]

    def by_set_value(value: Any) -> Any:
        tensor = oprack.to_tensor(np.zeros_like(X))
        tensor.set_value(value)
        return oprack.functional.double(tensor).numpy()

    found: dict[str, Callable[[Any], Any]] = {
        "handle, copied": by_handle(False),
        "handle, shared": by_handle(True),
        "predictor.run": lambda v: predictor.run([v])[0],  # type: ignore[index]
        "predictor.run, LoDTensor": lambda v: predictor.run([LoDTensor(v)])[0],  # type: ignore[index]
        "to_tensor": lambda v: oprack.functional.double(oprack.to_tensor(v)).numpy(),
        "to_tensor, LoDTensor": lambda v: oprack.functional.double(oprack.to_tensor(LoDTensor(v))).numpy(),
        "set_value": by_set_value,
        "scope": by_scope,
    }
    for prepared in (False, True):
        exe = Executor(prepared=prepared)
        forms: dict[str, Callable[[Any], Any]] = {
            "array": lambda v: v,
            "LoDTensor": LoDTensor,
            "pair": lambda v: (v, []),
        }
        for name, form in forms.items():
            found[f"Executor({prepared}), {name}"] = lambda v, exe=exe, form=form: exe.run(
                program, {"x": form(v)}, ["y"], Scope()
            )[0]
    return found


@pytest.mark.parametrize("odd", list(ODD))
def test_odd_arrays_give_the_numbers_of_plain_ones(
    odd: str, program: Program, predictor: oprack.inference.Predictor
) -> None:
    for name, go in entrances(program, predictor).items():
        for _ in range(2):
            value = ODD[odd]()
            assert np.array_equal(go(value), 2 * X), name
            assert np.array_equal(np.asarray(value), X), f"{name}: the caller's array is left alone"
    for array in SEEN:
        assert type(array) is np.ndarray and array.dtype.isnative and array.flags.aligned
        assert array.flags.c_contiguous or array.flags.f_contiguous


def test_shared_memory_is_read_when_the_predictor_runs(predictor: oprack.inference.Predictor) -> None:
    memory = X.astype(">f4")
    predictor.get_input_handle("x").share_external_data(memory)
    for k in (1, 3):
        memory[...] = k * X
        predictor.run()
        assert (predictor.get_output_handle("y").copy_to_cpu() == 2 * k * X).all()


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (np.ma.array(X, mask=X > 11), r"a masked array, 1 of whose 12 elements have no value.*array\.filled"),
        (X.astype(object), "dtype"),
        (X.astype(np.longdouble), "(longdouble|float128)"),
        (np.array([b"ab"]), "."),
        (np.zeros(3, [("a", "f4"), ("b", ">i2")]), "."),
    ],
)
def test_arrays_without_numbers_that_kernels_know_are_refused(
    bad: Any, text: str, program: Program, predictor: oprack.inference.Predictor
) -> None:
    for name, go in entrances(program, predictor).items():
        if name in ("scope", "set_value") or "to_tensor" in name:
            continue
        if isinstance(bad, np.ma.MaskedArray) and "LoDTensor" in name:  # which can't be made
            with pytest.raises(InvalidArgumentError, match=text):
                go(bad)
            continue
        with pytest.raises(FeedDtypeError, match=f"(?s)feed 'x': .*{text}"):
            go(bad)


@pytest.mark.parametrize("entrance", ["to_tensor", "set_value", "scope"])
def test_masked_arrays_are_refused_outside_of_feeds_too(
    entrance: str, program: Program, predictor: oprack.inference.Predictor
) -> None:
    with pytest.raises(InvalidArgumentError, match="a masked array, 1 of whose 12 elements have no value"):
        entrances(program, predictor)[entrance](np.ma.array(X, mask=X > 11))


def test_dims_in_another_order_stay_where_their_elements_are() -> None:
    image = np.ones((2, 5, 6, 3), np.float32).transpose(0, 3, 1, 2)
    assert plain_array(image) is image and plain_array(X.T).base is X
    for odd in (image[:, :2], image[..., ::-1], np.broadcast_to(X[0], (3, 4)), np.zeros((0, 5), ">i4")):
        plain = plain_array(odd)
        assert plain is not odd and plain.flags.c_contiguous and np.array_equal(plain, odd)


def test_a_scalar_keeps_its_rank() -> None:
    for scalar in (np.float32(3), np.array(3, ">f4"), np.array(3, np.float32)):
        plain = plain_array(scalar)
        assert plain.shape == () and plain.dtype == np.float32 and plain.dtype.isnative and plain == 3


@pytest.mark.parametrize("shape", [None, 2.5, object()])
def test_a_handle_says_what_it_takes_as_a_shape(predictor: oprack.inference.Predictor, shape: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"input 'x': reshape\(.*\): expected a list of sizes, such as"):
        predictor.get_input_handle("x").reshape(shape)


def test_copies_use_their_memory_again() -> None:
    """For data of any size and dtype, as long as nothing refers to the copy before."""
    slot, rng = oprack.inference.tensor_handle.Slot("x", None, True), np.random.default_rng(0)
    places = []
    for shape, dtype in (
        ((700, 700), "float32"),
        ((300, 500), "float64"),
        ((900, 300), "int64"),
        ((600, 700), "uint8"),
    ):
        data = rng.integers(0, 100, shape).astype(dtype)
        slot.copy(data)
        places.append(slot.array.__array_interface__["data"][0])
        assert slot.array.dtype == dtype and slot.dims == shape and not np.shares_memory(slot.array, data)
        np.testing.assert_array_equal(slot.array, data)
    assert places[1] == places[0] and places[3] == places[2]


def test_copies_of_a_result_are_the_users() -> None:
    """They use memory again that nobody has; what somebody has keeps its values, and writing to it changes no other."""
    slot = oprack.inference.tensor_handle.Slot("y", None, False)
    results = [np.full((700, 300 + i), float(i), np.float32) for i in range(3)]
    places = []
    for result in results:
        slot.fill(result)
        copy = slot.copied()
        np.testing.assert_array_equal(copy, result)
        places.append(copy.__array_interface__["data"][0])
        del copy
    assert len(set(places)) == 1
    held = slot.copied()
    held[...] = 7.0
    np.testing.assert_array_equal(slot.copied(), results[2])
    assert (results[2] == 2.0).all() and (held == 7.0).all()
    slot.fill(results[0].T)
    np.testing.assert_array_equal(slot.copied(), results[0].T)


@pytest.mark.parametrize("part", [lambda a: a, lambda a: a[5:7], lambda a: a.reshape(-1).view("uint8")])
def test_a_copy_that_somebody_still_has_keeps_its_values(part: Callable[[np.ndarray], np.ndarray]) -> None:
    slot = oprack.inference.tensor_handle.Slot("x", None, True)
    slot.copy(np.full((700, 700), 3.0, np.float32))
    held = part(slot.array)
    before = held.copy()
    for value in (4.0, 5.0):
        slot.copy(np.full((700, 700), value, np.float32))
        assert (slot.array == value).all()
    np.testing.assert_array_equal(held, before)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(np.ones((800, 900), np.float32).T, id="other strides"),
        pytest.param(np.ones((2, 3), np.float32), id="small"),
        pytest.param(np.ones((0, 900), np.float32), id="empty"),
        pytest.param(np.float32(2.0).reshape(()), id="no dims"),
    ],
)
def test_copies_of_other_arrays(data: np.ndarray) -> None:
    slot = oprack.inference.tensor_handle.Slot("x", None, True)
    slot.copy(data)
    assert slot.array.shape == data.shape and not np.shares_memory(slot.array, data)
    np.testing.assert_array_equal(slot.array, data)


def test_a_small_input_does_not_hold_the_memory_of_a_large_one() -> None:
    slot = oprack.inference.tensor_handle.Slot("x", None, True)
    slot.copy(np.ones((4000, 1000), np.float32))
    slot.copy(np.ones((400, 300), np.float32))
    slot.copy(np.ones((600, 300), np.float32))
    assert slot.array.base is None or slot.array.base.nbytes < 8 * 600 * 300 * 4
