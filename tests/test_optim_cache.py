"""Config.set_optim_cache_dir: the same numbers with and without, and no entry is used but for exactly its model."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import LoDTensor, Program
from oprack.cli.main import main
from oprack.desc.plain import from_plain, to_plain
from oprack.errors import CorruptModelError, InvalidArgumentError
from oprack.inference import Config, create_predictor, optim_cache
from oprack.inference.optim_cache import OptimCache, cache_key
from oprack.io import inference_model, load_inference_model, save_inference_model
from oprack.packs.installed import discovery
from oprack.packs.manager import PackManager, use_manager
from oprack.tensor import Scope
from optim_models import Passes, X, answer, config, counted, expected, only, save, weights

DATA = Path(__file__).parent / "data"
SMALL, PROGRAMS = DATA / "small_models", DATA / "programs"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    return counted(monkeypatch)


@pytest.fixture
def cache(tmp_path: Path, passes: Passes) -> OptimCache:
    return OptimCache(tmp_path / "cache")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(tmp_path / "model", 1.0)


# The same numbers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["resnet", "mobilenet", "bert"])
def test_small_models_with_changed_shapes(name: str, cache: OptimCache, passes: Passes) -> None:
    with np.load(SMALL / f"{name}.npz") as data:
        inputs = {key.removeprefix("in/"): data[key] for key in data if key.startswith("in/")}
        want = [data[key] for key in sorted(data) if key.startswith("out")]
    plain, first, second = (create_predictor(config(SMALL / name, c)) for c in (None, cache, cache))
    assert passes.runs == 2 and len(cache.entries()) == 1
    names = plain.get_input_names()
    assert second.get_input_names() == names and second.get_output_names() == plain.get_output_names()
    fed = [inputs[n] for n in names]
    for got, paddle in zip(second.run(fed), want, strict=True):
        np.testing.assert_allclose(got, paddle, rtol=1e-4, atol=1e-5)
    for feed in (fed, [a[:1] for a in fed], [np.concatenate([a, a]) for a in fed], fed):
        for a, b, c in zip(plain.run(feed), first.run(feed), second.run(feed), strict=True):
            assert a.tobytes() == b.tobytes() == c.tobytes() and a.shape == c.shape
    assert to_plain(second._model.program.desc) == to_plain(first._model.program.desc)


@pytest.mark.parametrize("name", ["gru_cls", "lod_seqops", "while_loop"])
def test_sequences_and_loops(name: str, cache: OptimCache, passes: Passes) -> None:
    folder = PROGRAMS / name
    meta = json.loads((folder / "meta.json").read_text())
    feeds = [LoDTensor(np.load(folder / f["file"]), f.get("lod")) for f in meta["feed"]]
    outputs = []
    for directory in ("", cache.directory, cache.directory):
        c = Config(str(folder))
        c.set_optim_cache_dir(directory)
        predictor = create_predictor(c)
        predictor.run(feeds)
        handles = [predictor.get_output_handle(n) for n in predictor.get_output_names()]
        outputs.append([(h.copy_to_cpu(), h.lod()) for h in handles])
    assert passes.runs == 2
    for (a, a_lod), (b, b_lod), (c_, c_lod) in zip(*outputs, strict=True):
        assert a.tobytes() == b.tobytes() == c_.tobytes() and a_lod == b_lod == c_lod


def test_the_second_process_runs_no_pass(model: Path, cache: OptimCache, passes: Passes) -> None:
    for _ in range(3):
        np.testing.assert_array_equal(answer(config(model, cache)), expected(1.0))
    assert passes.runs == 1
    predictor = create_predictor(config(model, cache))
    np.testing.assert_array_equal(predictor.clone().run([X])[0], expected(1.0))
    for name in predictor._parameters.local_var_names():
        value = predictor._parameters.var(name).value
        assert value.shared and not value.array.flags.writeable


def test_buffers_and_one_file_per_parameter(tmp_path: Path, model: Path, cache: OptimCache, passes: Passes) -> None:
    program, params = (Path(f"{model}{suffix}").read_bytes() for suffix in (".pdmodel", ".pdiparams"))
    scope = Scope()
    loaded = load_inference_model(model, scope)
    separate = tmp_path / "separate"
    separate.mkdir()
    (separate / "__model__").write_bytes(program)
    oprack.io.save_vars(separate, loaded.program, scope)
    for _ in range(2):
        memory, folder = Config(), Config(str(separate))
        memory.set_model_buffer(program, len(program), params, len(params))
        for c in (memory, folder):
            c.set_optim_cache_dir(cache.directory)
            np.testing.assert_array_equal(answer(c), expected(1.0))
    assert passes.runs == 2
    state = (separate / "w").stat()
    scope.var("w").set(weights(2.0))
    oprack.io.save_vars(separate, loaded.program, scope)
    os.utime(separate / "w", ns=(state.st_atime_ns, state.st_mtime_ns))
    np.testing.assert_array_equal(answer(folder), expected(2.0))


def test_files_of_parameters_are_known_without_reading_the_program(
    tmp_path: Path, cache: OptimCache, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, scope, folder = Program(), Scope(), tmp_path / "separate"
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name, dtype="float32", shape=[-1, 3])
    block.create_var("net/layer.0/b", dtype="float32", shape=[3], persistable=True)
    block.append_op("elementwise_add", {"X": "x", "Y": "net/layer.0/b"}, {"Out": "y"})
    scope.var("net/layer.0/b").set(np.ones(3, np.float32))
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], scope)
    folder.mkdir()
    (folder / "__model__").write_bytes((tmp_path / "m.pdmodel").read_bytes())
    oprack.io.save_vars(folder, program, scope)
    c = Config(str(folder))
    c.set_optim_cache_dir(cache.directory)
    x = np.zeros((2, 3), np.float32)
    with monkeypatch.context() as patch:
        assert answer(c, x).max() == 1 and passes.runs == 1
        patch.setattr(inference_model, "parse_model", None)
        (folder / "notes.txt").write_text("changes nothing")
        assert answer(c, x).max() == 1 and passes.runs == 1
    scope.var("net/layer.0/b").set(np.full(3, 2, np.float32))
    oprack.io.save_vars(folder, program, scope)
    assert answer(c, x).max() == 2 and passes.runs == 2
    assert len(cache.entries()) == 2
    # of a folder with many files the program says which, and notes.txt is none
    monkeypatch.setattr(inference_model, "_MOST_FILES", 0)
    for _ in range(2):
        assert answer(c, x).max() == 2 and passes.runs == 3
    # nothing is kept of a model of which a file does not count
    cache.clear()
    monkeypatch.setattr(optim_cache, "files_beside", lambda path, **names: {"program": Path(path, "__model__")})
    assert answer(c, x).max() == 2 and not cache.entries()


def test_memory_in_another_order_keeps_it(model: Path, cache: OptimCache, passes: Passes) -> None:
    c, scope = config(model, cache), Scope()
    arrays = {
        "turned": np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        "empty": np.zeros((0, 5), np.int64),
        "flags": np.array([[True], [False]]),
        "number": np.array(7, np.float16),
        "sequences": LoDTensor(np.arange(3), [[0, 1, 3]]),
    }
    for name, value in arrays.items():
        scope.var(name).value = value if isinstance(value, LoDTensor) else LoDTensor(value)
    manager = create_predictor(config(model))._executor.manager
    assert cache.store("key", load_inference_model(model, Scope()), scope, manager)
    found = Scope()
    assert cache.load("key", found).feed_names == ["x"] and c.optim_cache_dir() == str(cache.directory)
    for name, value in arrays.items():
        got, want = found.get_var(name).get(), value if isinstance(value, LoDTensor) else LoDTensor(value)
        np.testing.assert_array_equal(got.array, want.array)
        assert got.lod == want.lod and got.dtype == want.dtype and not got.array.flags.writeable
        assert want.array.size < 2 or got.array.strides == want.array.strides


def test_parameters_that_a_device_folded_are_kept_from_host_memory(model: Path, cache: OptimCache) -> None:
    from oprack.device import DeviceContextPool
    from oprack.tensor import CPUPlace, CUDAPlace, SelectedRows
    from oprack_cuda.testing.context import StrictDeviceContext
    from oprack_cuda.testing.strict import StrictArray

    manager, scope, found = PackManager(), Scope(), Scope()
    manager.__dict__["device_contexts"] = DeviceContextPool(lambda kind: StrictDeviceContext)
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    scope.var("w").value = LoDTensor(StrictArray(array), place=CUDAPlace(0))
    loaded = load_inference_model(model, Scope())
    assert cache.store("key", loaded, scope, manager) and cache.load("key", found) is not None
    value = found.get_var("w").get()
    assert value.place == CPUPlace() and value.array.tolist() == array.tolist()
    scope.var("rows").value = SelectedRows(np.array([0]), np.ones((1, 2), np.float32), 3)
    assert not cache.store("other", loaded, scope, manager) and len(cache.entries()) == 1


# Another model, other settings, other code ----------------------------------------------------------------------------
def test_a_model_replaced_by_one_of_the_same_size_and_time(model: Path, cache: OptimCache, passes: Passes) -> None:
    assert answer(config(model, cache)).tolist() == expected(1.0).tolist()
    params = Path(f"{model}.pdiparams")
    before = params.stat()
    save(model.parent, 3.0)
    os.utime(params, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert params.stat().st_size == before.st_size
    for _ in range(2):
        assert answer(config(model, cache)).tolist() == expected(3.0).tolist()
    save(model.parent, 1.0)
    assert answer(config(model, cache)).tolist() == expected(1.0).tolist()
    assert passes.runs == 2 and len(cache.entries()) == 2


def test_a_model_replaced_while_it_is_read_is_not_kept(
    model: Path, cache: OptimCache, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*args: Any, **kwargs: Any) -> Any:
        save(model.parent, 3.0)
        return Passes.optimize(*args, **kwargs)

    monkeypatch.setattr("oprack.ir.models.optimize_model", slow)
    assert answer(config(model, cache)).tolist() == expected(1.0).tolist()
    assert not cache.entries()


def test_settings_have_entries_of_their_own(
    model: Path, cache: OptimCache, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[Callable[[Config], object]] = [
        lambda c: None,
        lambda c: c.switch_strict_sums(),
        lambda c: c.disable_mkldnn(),
        lambda c: c.delete_pass("remove_dead_code"),
        lambda c: c.pass_builder().append_pass("remove_dead_code"),
        lambda c: c.enable_pass("unpad"),
        lambda c: c.switch_deterministic(),
        lambda c: c.set_memory_limit(1 << 30),
        lambda c: monkeypatch.setenv("OPRACK_LOOP_LIMIT", "1000"),
    ]
    for count, change in enumerate(changes, 1):
        for _ in range(2):
            c = config(model, cache)
            change(c)
            np.testing.assert_array_equal(answer(c), expected(1.0))
        assert passes.runs == count == len(cache.entries())


def test_packs_libraries_and_versions_are_part_of_the_key(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = create_predictor(config(model))._executor
    keys = {cache_key(config(model), executor)}
    monkeypatch.setattr("oprack.inference.optim_cache.__version__", "9.9")
    keys.add(cache_key(config(model), executor))
    monkeypatch.setattr("oprack.inference.optim_cache._cpu_features", lambda: ["other"])
    keys.add(cache_key(config(model), executor))
    monkeypatch.setattr("oprack.inference.optim_cache._identity", lambda library: "other")
    keys.add(cache_key(config(model), executor))
    executor.manager = PackManager(blocked=["onednn"])
    keys.add(cache_key(config(model), executor))
    assert len(keys) == 5


def test_libraries_of_other_places_are_not_asked(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("oprack.inference.optim_cache._identity", lambda library: asked.append(library) or "")
    cache_key(config(model), create_predictor(config(model))._executor)
    served = ["oprack_numba.library", "oprack_onednn.kernel_library", "oprack_onnxruntime.library"]
    assert [type(library).__module__ for library in asked] == served


def test_the_library_says_its_version_and_instructions() -> None:
    from oprack_onednn.dnnl.library import LIBRARY

    assert LIBRARY.status().startswith(LIBRARY.identity()) and "threads" not in LIBRARY.identity()


def test_changed_code_makes_it_anew(
    tmp_path: Path, model: Path, cache: OptimCache, passes: Passes, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    source = tmp_path / "passes.py"
    source.write_text("one")
    files = discovery.loaded_files
    added = lambda packs: [*files(packs), (str(source), *discovery.file_state(source))]  # noqa: E731
    monkeypatch.setattr(discovery, "loaded_files", added)
    for _ in range(2):
        answer(config(model, cache))
    assert passes.runs == 1
    source.write_text("more")
    with caplog.at_level(logging.INFO, "oprack.inference.optim_cache"):
        np.testing.assert_array_equal(answer(config(model, cache)), expected(1.0))
    assert passes.runs == 2 and len(caplog.records) == 1 and f"{source} changed" in caplog.text
    answer(config(model, cache))
    assert passes.runs == 2


def test_loaded_files_are_those_of_core_packs_and_manifests() -> None:
    oprack.op_info("relu")
    manager = oprack.default_manager()
    names = {path for path, mtime, size in discovery.loaded_files(manager.discovered()) if mtime and size}
    for module in ("oprack.packs.manager", manager.op_info("relu").infer_shape.__module__):
        if (path := getattr(sys.modules.get(module), "__file__", None)) is not None:
            assert path in names
    assert sum(name.endswith("ops.toml") for name in names) >= 10
    assert not any("numpy" in name for name in names)
    assert discovery.changed_since_start([("a", 1, 1)]) == ""
    assert discovery.changed_since_start([("a", 1, 1), ("b", 2**62, 1)]) == "b"


def test_code_written_after_the_start_is_not_kept(
    model: Path, cache: OptimCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "changed_since_start", lambda files: "passes.py")
    np.testing.assert_array_equal(answer(config(model, cache)), expected(1.0))
    assert not cache.entries()


def test_ops_of_this_process_and_debugging_leave_it_aside(
    model: Path, cache: OptimCache, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oprack.op import Input, OpDef, Output

    class Mine(OpDef, type="mine"):
        """Out = X."""

        X = Input("Any.")
        Out = Output("X.")

        def infer_shape(ctx: Any) -> None:
            ctx.set_dim("Out", ctx.dim("X"))

    with use_manager(PackManager()) as manager:
        assert not manager.here.has_registrations()
        manager.register_op(Mine)
        assert manager.here.has_registrations()
        np.testing.assert_array_equal(answer(config(model, cache)), expected(1.0))
    debugged = config(model, cache)
    debugged.switch_ir_debug()
    answer(debugged)
    monkeypatch.setenv("OPRACK_IR_DEBUG", "1")
    answer(config(model, cache))
    assert not cache.entries() and passes.runs == 3


# Size, and several at once --------------------------------------------------------------------------------------------
def test_the_oldest_entries_go(tmp_path: Path, cache: OptimCache, passes: Passes) -> None:
    models = [save(tmp_path / f"model{i}", float(i + 1)) for i in range(4)]
    answer(config(models[0], cache))
    size = only(cache).stat().st_size
    (cache.directory / "notes.txt").write_text("mine")
    abandoned = cache.directory / ".oprack-0123.tmp"
    abandoned.write_text("")
    os.utime(abandoned, (0, 0))
    for i, model in enumerate(models[1:], 1):
        for path, _, used in cache.entries():
            os.utime(path, (used - 100, used - 100))
        answer(config(models[0], cache))  # used again, so it stays
        c = config(model)
        c.set_optim_cache_dir(cache.directory, max_bytes=2 * size + 1000)
        np.testing.assert_array_equal(answer(c), expected(float(i + 1)))
        assert len(cache.entries()) == 2
    runs = passes.runs
    answer(config(models[0], cache))
    answer(config(models[3], cache))
    assert passes.runs == runs == 4
    assert (cache.directory / "notes.txt").exists() and not abandoned.exists()
    c = config(models[1])
    c.set_optim_cache_dir(cache.directory, max_bytes=100)
    answer(c)
    assert len(cache.entries()) == 2 and passes.runs == 5


SCRIPT = """
import sys, numpy as np
known = {*sys.modules}
from oprack.inference import Config, create_predictor
c = Config(sys.argv[1] + ".pdmodel", sys.argv[1] + ".pdiparams")
c.set_optim_cache_dir(sys.argv[2])
(y,) = create_predictor(c).run([np.array([[1, -2], [-3, 4]], "float32")])
unused = "oprack.ir google.protobuf importlib.metadata inspect logging pluggy traceback tomllib oprack.names.spellings"
print(y.tolist(), {*unused.split()} & {*sys.modules} - known)
"""


def test_processes_at_once_and_what_a_later_one_imports(model: Path, cache: OptimCache) -> None:
    command = [sys.executable, "-c", SCRIPT, str(model), str(cache.directory)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    want = str(expected(1.0).tolist())
    for run in runs:
        assert run.communicate(timeout=120)[0].startswith(want) and run.returncode == 0
    last = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    files = [path.name for path in cache.directory.iterdir()]
    assert len(files) == 1 and not any(name.endswith(".tmp") for name in files)
    assert last.strip() == f"{want} set()"


# Around it ------------------------------------------------------------------------------------------------------------
def test_config_says_what_it_was_given(tmp_path: Path) -> None:
    c = Config()
    assert c.optim_cache_dir() == "" and "optim_cache_dir" not in c.summary()
    c.set_optim_cache_dir(tmp_path, max_bytes=5)
    assert c.optim_cache_dir() == str(tmp_path) and c.optim_cache_bytes() == 5 and str(tmp_path) in c.summary()
    assert Config(c).optim_cache_dir() == str(tmp_path)
    for arguments in ((None,), (3,), ("a", -1), ("a", "1")):
        with pytest.raises(InvalidArgumentError, match="set_optim_cache_dir"):
            c.set_optim_cache_dir(*arguments)


def test_command(model: Path, cache: OptimCache, passes: Passes, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(cache.directory)
    assert main(["cache", directory, "--json"]) == 0 and json.loads(capsys.readouterr().out) == []
    answer(config(model, cache))
    assert main(["cache", directory]) == 0 and only(cache).name in capsys.readouterr().out
    assert main(["cache", directory, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["file"] == str(only(cache)) and entry["bytes"] == only(cache).stat().st_size
    (cache.directory / "notes.txt").write_text("mine")
    assert main(["cache", directory, "--clear"]) == 0
    assert "1 files removed" in capsys.readouterr().out
    assert [p.name for p in cache.directory.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*/*.pdmodel")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_programs_as_plain_data(path: Path) -> None:
    desc = Program.parse(path.read_bytes()).desc
    desc.blocks[0].ops[0].origin, desc.blocks[0].ops[0].is_target = 7, True
    plain = json.loads(json.dumps(to_plain(desc)))
    again = from_plain(plain)
    assert str(again) == str(desc) and to_plain(again) == to_plain(desc)
    assert (again.blocks[0].ops[0].origin, again.blocks[0].ops[0].is_target) == (7, True)
    for a, b in zip(again.blocks, desc.blocks, strict=True):
        assert [op.attrs for op in a.ops] == [op.attrs for op in b.ops]
        assert [op.attr_types for op in a.ops] == [op.attr_types for op in b.ops]
        assert {n: (v.type, v.dtype, v.shape, v.lod_level, v.need_check_feed) for n, v in a.vars.items()} == {
            n: (v.type, v.dtype, v.shape, v.lod_level, v.need_check_feed) for n, v in b.vars.items()
        }


def test_plain_data_that_is_no_program() -> None:
    for data in (None, 1, [], {}, {"version": 1, "op_versions": {}, "blocks": "no"}):
        with pytest.raises(CorruptModelError, match="description of a program"):
            from_plain(data)
