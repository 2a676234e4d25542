"""Predictors and handles: what paddle.inference answers, with a model of two inputs, a parameter and two outputs."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.device import CPUDeviceContext
from oprack.errors import (
    FeedDtypeError,
    FeedLoDError,
    FeedShapeError,
    InvalidArgumentError,
    InvalidLoDError,
    MissingPackError,
    NotFoundError,
    PreconditionNotMetError,
)
from oprack.inference import Config, DataType, Predictor, PredictorPool, create_predictor
from oprack.io import save_inference_model
from oprack.kernel import kernel
from oprack.packs.extensions import Extensions
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.tensor import LoDTensor, LoDTensorArray, Scope

IDS = np.array([2, 0, 2])
W = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
X = np.array([[1, -1]], np.float32)


@pytest.fixture
def prefix(build: Callable[..., Program], tmp_path: Path) -> Path:
    """rows = W[ids] with the LoD of ids; twice = 2 x; both are outputs."""
    ids = LoDTensor(IDS, [[0, 1, 3]])
    ops = [("pick", {"Ids": "ids", "W": "w"}, {"Out": "rows"}), ("double", {"X": "x"}, {"Out": "twice"})]
    program = build({"ids": ids, "w": W, "x": X}, ops)
    w = program.global_block().vars["w"]
    w.shape, w.persistable = W.shape, True
    scope = Scope()
    scope.var("w").set(W)
    save_inference_model(tmp_path / "m", program, ["x", "ids"], ["twice", "rows"], scope)
    return tmp_path / "m"


def config(prefix: Path) -> Config:
    return Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams")


@pytest.fixture
def predictor(prefix: Path) -> Predictor:
    return create_predictor(config(prefix))


def fill(predictor: Predictor, x: np.ndarray = X, ids: np.ndarray = IDS, lod: Any = ((0, 1, 3),)) -> None:
    predictor.get_input_handle("x").copy_from_cpu(x)
    handle = predictor.get_input_handle("ids")
    handle.copy_from_cpu(ids)
    handle.set_lod(lod)


def read(predictor: Predictor) -> list[np.ndarray]:
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


# Running --------------------------------------------------------------------------------------------------------------
def test_names_are_in_the_order_of_the_columns(predictor: Predictor) -> None:
    assert predictor.get_input_names() == ["x", "ids"]
    assert predictor.get_output_names() == ["twice", "rows"]
    assert repr(predictor) == "<Predictor ['x', 'ids'] -> ['twice', 'rows'] at CPUPlace()>"


def test_run_on_handles_returns_nothing_and_outputs_carry_lod(predictor: Predictor) -> None:
    for n in (1, 4):
        fill(predictor, np.repeat(X, n, 0))
        assert predictor.run() is None
        twice, rows = read(predictor)
        assert (twice == np.repeat(2 * X, n, 0)).all() and (rows == W[IDS]).all()
    rows = predictor.get_output_handle("rows")
    assert rows.lod() == [[0, 1, 3]] and rows.shape() == [3, 2] and rows.type() is DataType.FLOAT32
    assert predictor.get_output_handle("twice").lod() == []


def test_run_on_a_list_returns_arrays(predictor: Predictor) -> None:
    twice, rows = predictor.run([X, LoDTensor(IDS, [[0, 3]])])
    assert type(twice) is np.ndarray and (twice == 2 * X).all() and (rows == W[IDS]).all()
    assert predictor.get_output_handle("rows").lod() == [[0, 3]]
    twice[...] = 0
    assert (predictor.get_output_handle("twice").copy_to_cpu() == 2 * X).all()
    with pytest.raises(InvalidArgumentError, match=r"run\(inputs\): got 1 arrays; the model has 2 inputs: x, ids"):
        predictor.run([X])


def test_an_input_that_was_not_filled_is_named(predictor: Predictor) -> None:
    predictor.get_input_handle("x").copy_from_cpu(X)
    with pytest.raises(PreconditionNotMetError, match=r"input 'ids' was not filled; call .*get_input_handle\('ids'\)"):
        predictor.run()


def test_unknown_names_list_the_known_ones(predictor: Predictor) -> None:
    with pytest.raises(NotFoundError, match="the model has no input 'rows'; it has 'x', 'ids'"):
        predictor.get_input_handle("rows")
    with pytest.raises(NotFoundError, match="the model has no output 'x'; it has 'twice', 'rows'"):
        predictor.get_output_handle("x")


def test_inputs_are_checked_against_the_program(predictor: Predictor) -> None:
    fill(predictor, X.astype(np.float64))
    with pytest.raises(FeedDtypeError, match=r"feed 'x': got float64\[1, 2\]; the program expects float32"):
        predictor.run()
    fill(predictor, X[0])
    with pytest.raises(FeedShapeError, match=r"feed 'x': got shape .* of rank 1; the program expects rank 2"):
        predictor.run()
    fill(predictor, lod=[[0, 1, 2]])
    with pytest.raises(FeedLoDError, match="feed 'ids': level 0 ends at 2; expected 3, the tensor's rows"):
        predictor.run()


def test_an_output_that_is_no_tensor_is_told(predictor: Predictor, rack: PackManager) -> None:
    @kernel("double", priority=1)
    def items(X: Any) -> Any:
        return LoDTensorArray([LoDTensor(X)])

    rack.register_kernel(items)
    fill(predictor)
    with pytest.raises(InvalidArgumentError, match=r"output 'twice' is a LoDTensorArray; .*return_numpy=False"):
        predictor.run()


def test_a_model_whose_ops_are_missing_is_refused_when_it_is_loaded(prefix: Path) -> None:
    from oprack.packs.manager import use_manager

    manager = PackManager(entry_points=[], environ={})
    with use_manager(manager), pytest.raises(MissingPackError, match=r"(?s)double.*pick"):
        create_predictor(config(prefix))


# Handles --------------------------------------------------------------------------------------------------------------
def test_before_it_is_filled_a_handle_says_what_it_knows(predictor: Predictor) -> None:
    """Paddle answers shape [0] and no LoD as well; of the dtype it knows nothing yet."""
    ids, rows = predictor.get_input_handle("ids"), predictor.get_output_handle("rows")
    for handle, dtype in ((ids, DataType.INT64), (rows, DataType.FLOAT32)):
        assert (handle.shape(), handle.lod(), handle.type()) == ([0], [], dtype)
    with pytest.raises(PreconditionNotMetError, match=r"handle 'ids' holds no value yet; call copy_from_cpu\(array\)"):
        ids.copy_to_cpu()
    with pytest.raises(PreconditionNotMetError, match=r"handle 'rows' holds no value yet; call predictor.run\(\)"):
        rows.copy_to_cpu()
    assert ids.name() == "ids" and repr(ids) == "<input 'ids', INT64 [0]>"


def test_data_brings_its_own_shape_whatever_was_announced(predictor: Predictor) -> None:
    x = predictor.get_input_handle("x")
    x.reshape([6, 2])
    assert x.shape() == [6, 2]
    fill(predictor)  # one row
    assert x.shape() == [1, 2]
    predictor.run()
    x.copy_from_cpu(np.repeat(X, 5, 0))
    assert x.shape() == [5, 2]


def test_reshape_shows_data_of_the_same_size_anew_and_drops_other(predictor: Predictor) -> None:
    x = predictor.get_input_handle("x")
    x.copy_from_cpu(np.zeros((2, 6), np.float32))
    x.reshape((4, 3))
    assert x.copy_to_cpu().shape == (4, 3)
    x.reshape(12)
    assert x.copy_to_cpu().shape == (12,)
    x.reshape([1, 2])
    with pytest.raises(PreconditionNotMetError, match="holds no value yet"):
        x.copy_to_cpu()
    for wrong in ([-1, 2], [1.5], "ab"):
        with pytest.raises(InvalidArgumentError, match=r"input 'x': reshape\(.*\): expected sizes of at least 0"):
            x.reshape(wrong)


def test_copy_from_cpu_copies_and_share_external_data_does_not(predictor: Predictor) -> None:
    x, data = predictor.get_input_handle("x"), X.copy()
    x.copy_from_cpu(data)
    data[0, 0] = 9
    assert x.copy_to_cpu()[0, 0] == 1
    x.share_external_data(data)
    data[0, 0] = 7
    assert x.copy_to_cpu()[0, 0] == 7 and x.copy_to_cpu() is not data
    predictor.get_input_handle("ids").share_external_data(LoDTensor(IDS, [[0, 3]]))
    predictor.run()
    assert read(predictor)[0][0, 0] == 14 and data[0, 0] == 7
    assert predictor.get_output_handle("rows").lod() == [[0, 3]]


def test_what_can_not_be_filled(predictor: Predictor) -> None:
    x, rows = predictor.get_input_handle("x"), predictor.get_output_handle("rows")
    for wrong in ([1, 2], "text", None):
        with pytest.raises(InvalidArgumentError, match=r"input 'x': got .*; expected numpy.ndarray"):
            x.copy_from_cpu(wrong)
    for call in (
        lambda: rows.copy_from_cpu(X),
        lambda: rows.share_external_data(X),
        lambda: rows.reshape([1]),
        lambda: rows.set_lod([[0, 1]]),
    ):
        with pytest.raises(InvalidArgumentError, match="handle 'rows' is an output"):
            call()


def test_lod_is_checked_when_it_is_set_and_stays_for_the_next_run(predictor: Predictor) -> None:
    fill(predictor)
    ids = predictor.get_input_handle("ids")
    with pytest.raises(InvalidLoDError, match=r"input 'ids': level 0 is .*; expected offsets that start at 0"):
        ids.set_lod([[1, 3]])
    assert ids.lod() == [[0, 1, 3]]
    ids.lod()[0].append(7)
    ids.copy_from_cpu(IDS[::-1])
    predictor.run()
    assert predictor.get_output_handle("rows").lod() == [[0, 1, 3]]
    ids.set_lod([])
    assert ids.lod() == []


def test_dtypes_by_handle(predictor: Predictor) -> None:
    x = predictor.get_input_handle("x")
    for name in ("float64", "float32", "float16", "int64", "int32", "uint8", "int8", "bool"):
        x.copy_from_cpu(X.astype(name))
        assert x.type().name == name.upper()
    x.copy_from_cpu(X.astype("int16"))
    with pytest.raises(
        InvalidArgumentError, match=r"int16.* has no paddle.inference.DataType; expected one of FLOAT32"
    ):
        x.type()


# Clones and threads ---------------------------------------------------------------------------------------------------
def test_a_clone_shares_parameters_and_nothing_else(predictor: Predictor) -> None:
    fill(predictor)
    twin = predictor.clone()
    assert twin.get_input_handle("x").shape() == [0]
    fill(twin, 3 * X)
    predictor.run()
    twin.run()
    assert (read(predictor)[0] == 2 * X).all() and (read(twin)[0] == 6 * X).all()
    assert twin._parameters is predictor._parameters and twin._prepared is predictor._prepared
    w = twin._parameters.find_var("w").get().array.copy()
    w[2] = 0
    twin._parameters.find_var("w").set(w)
    predictor.run()
    assert (read(predictor)[1][0] == 0).all()


def test_parameters_are_read_only(predictor: Predictor) -> None:
    """Kernel libraries keep what they derive from such arrays."""
    flags = predictor._parameters.find_var("w").get().array.flags
    assert flags.owndata and not flags.writeable


def test_a_dropped_clone_leaves_nothing_behind(predictor: Predictor) -> None:
    twin = predictor.clone()
    fill(twin)
    twin.run()
    gone = weakref.ref(twin)
    del twin
    gc.collect()
    assert gone() is None and predictor._parameters.kids() == []


def test_clones_run_in_threads_at_once(predictor: Predictor, rack: PackManager) -> None:
    both = threading.Barrier(2, timeout=20)

    @kernel("double", priority=1)
    def together(X: Any, *, factor: float) -> Any:
        both.wait()  # only passes when two predictors are inside
        return X * np.float32(factor)

    rack.register_kernel(together)
    wrong: list[Any] = []

    def work(own: Predictor, k: int) -> None:
        for i in range(20):
            x = np.full((i + 1, 2), k, np.float32)
            fill(own, x)
            own.run()
            if not (read(own)[0] == 2 * x).all():
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(p, k)) for k, p in enumerate((predictor, predictor.clone()))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and not both.broken


def test_one_predictor_in_two_threads_is_an_error_that_leaves_the_first_alone(
    predictor: Predictor, rack: PackManager
) -> None:
    inside, go_on = threading.Event(), threading.Event()

    @kernel("double", priority=1)
    def slow(X: Any, *, factor: float) -> Any:
        inside.set()
        assert go_on.wait(20)
        return X * np.float32(factor)

    rack.register_kernel(slow)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.extend(predictor.run([X, LoDTensor(IDS, [[0, 3]])])))
    thread.start()
    assert inside.wait(20)
    with pytest.raises(
        PreconditionNotMetError, match=r"running in another thread; give each thread predictor.clone\(\)"
    ):
        predictor.run([5 * X, LoDTensor(IDS[:1], [[0, 1]])])
    go_on.set()
    thread.join()
    assert (results[0] == 2 * X).all() and results[1].shape == (3, 2)
    assert (predictor.get_input_handle("x").copy_to_cpu() == X).all()


def test_pool(prefix: Path) -> None:
    pool = PredictorPool(config(prefix), 3)
    first, last = pool.retrive(0), pool.retrieve(2)
    assert first is not last and first._parameters is last._parameters
    for wrong in (3, -1):
        with pytest.raises(InvalidArgumentError, match=rf"retrive\({wrong}\): the pool has predictors 0 to 2"):
            pool.retrive(wrong)
    with pytest.raises(InvalidArgumentError, match=r"PredictorPool\(config, 0\): expected a size of at least 1"):
        PredictorPool(config(prefix), 0)


# Memory, hooks, devices -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("memory_optim", [False, True])
def test_nothing_but_parameters_and_outputs_is_left_of_a_run(prefix: Path, memory_optim: bool) -> None:
    settings = config(prefix)
    settings.enable_memory_optim(memory_optim)
    predictor = create_predictor(settings)
    fill(predictor)
    for _ in range(2):
        predictor.run()
        assert predictor._parameters.kids() == [] and predictor._parameters.local_var_names() == ["w"]
        assert predictor.clear_intermediate_tensor() is None and predictor.try_shrink_memory() == 0
        assert (read(predictor)[0] == 2 * X).all()


def test_output_hook_sees_every_output_of_every_op(predictor: Predictor) -> None:
    seen: list[tuple[Any, ...]] = []
    predictor.register_output_hook(lambda op, name, t: seen.append((op, name, t.shape(), t.lod(), t.numpy().sum())))
    fill(predictor)
    predictor.run()
    assert ("pick", "rows", [3, 2], [[0, 1, 3]], W[IDS].sum()) in seen and ("double", "twice", [1, 2], [], 0.0) in seen
    assert [s[0] for s in seen].index("pick") < [s[0] for s in seen].index("double")


def test_the_profile_is_printed_when_the_predictor_goes(prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config(prefix)
    settings.enable_profile()
    predictor = create_predictor(settings)
    fill(predictor)
    predictor.run()
    assert capsys.readouterr().err == ""
    del predictor
    gc.collect()
    assert capsys.readouterr().err.splitlines()[0].startswith("op  ")


def test_a_gpu_without_its_plugin_is_told_before_any_run(prefix: Path) -> None:
    settings = config(prefix)
    settings.enable_use_gpu(100, 1)
    with pytest.raises(NotFoundError, match=r"no plugin serves places of kind 'cuda' \(asked for CUDAPlace\(1\)\)"):
        create_predictor(settings)


def test_a_gpu_that_a_plugin_serves(prefix: Path, rack: PackManager, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []

    class Device(CPUDeviceContext):
        def from_host(self, array: np.ndarray) -> np.ndarray:
            moved.append("to")
            return array.copy()

        def to_host(self, array: np.ndarray) -> np.ndarray:
            moved.append("from")
            return array.copy()

    @kernel("double", place="cuda")
    def on_gpu(X: Any, *, factor: float) -> Any:
        return X * np.float32(factor)

    @kernel("pick", place="cuda")
    def pick_on_gpu(Ids: Any, W: Any, Scale: Any = None) -> Any:
        return W[Ids]

    monkeypatch.setattr(Extensions, "place_factory", lambda _, kind: Device if kind == "cuda" else None)
    rack.register_kernel(on_gpu)
    rack.register_kernel(pick_on_gpu)
    settings = config(prefix)
    settings.enable_use_gpu(100, 0)
    predictor = create_predictor(settings)
    fill(predictor)
    predictor.run()
    assert (read(predictor)[0] == 2 * X).all() and (read(predictor)[1] == W[IDS]).all()
    assert "to" in moved and "from" in moved


def test_outputs_stay_when_what_was_fed_is_overwritten(build: Callable[..., Program], tmp_path: Path) -> None:
    program = build({"x": X}, [("double", {"X": "x"}, {"Out": "twice"})])
    save_inference_model(tmp_path / "m", program, ["x"], ["x", "twice"], Scope())
    predictor = create_predictor(config(tmp_path / "m"))
    handle = predictor.get_output_handle("x")
    for run in ("list", "shared"):
        x = X.copy()
        if run == "shared":
            predictor.get_input_handle("x").share_external_data(x)
            predictor.run()
        else:
            predictor.run([x])
        x[...] = 9
        assert handle.copy_to_cpu().tolist() == X.tolist(), run
