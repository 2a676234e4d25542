"""Config in all its forms, settings without effect, enums, versions, and the stand-in for paddle.inference."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import inference
from oprack.errors import InvalidArgumentError, MissingPackError, NotFoundError, PreconditionNotMetError
from oprack.functional.op_methods import _preferred
from oprack.inference import (
    Config,
    DataType,
    NoEffectWarning,
    PlaceType,
    PrecisionType,
    as_paddle,
    create_predictor,
    get_num_bytes_of_data_type,
    settings,
)
from oprack.io import save_inference_model
from oprack.packs.manager import PackManager, use_manager
from oprack.program import Program
from oprack.tensor import CPUPlace, Scope

X = np.array([[1, -1]], np.float32)


@pytest.fixture
def prefix(build: Callable[..., Program], tmp_path: Path) -> Path:
    """y = rows of w (the parameter) at ids."""
    program = build({"ids": np.array([0]), "w": X}, [("pick", {"Ids": "ids", "W": "w"}, {"Out": "y"})])
    w = program.global_block().vars["w"]
    w.shape, w.persistable = X.shape, True
    scope = Scope()
    scope.var("w").set(X)
    (tmp_path / "model").mkdir()
    save_inference_model(tmp_path / "model" / "m", program, ["ids"], ["y"], scope)
    return tmp_path / "model" / "m"


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_SAID", set())


def answer(config: Config) -> np.ndarray:
    (y,) = create_predictor(config).run([np.array([0, 0])])
    return y


# The model ------------------------------------------------------------------------------------------------------------
def test_every_way_to_name_a_model(prefix: Path) -> None:
    program, params = f"{prefix}.pdmodel", f"{prefix}.pdiparams"
    later, parts = Config(), Config()
    later.set_model(program, params)
    parts.set_prog_file(program)
    parts.set_params_file(params)
    pair = Config(program, params)
    for config in (Config(str(prefix.parent)), Config(prefix.parent), pair, later, parts, Config(pair)):
        assert (answer(config) == np.repeat(X, 2, 0)).all()
    assert (pair.prog_file(), pair.params_file(), pair.model_dir()) == (program, params, "")
    assert Config(str(prefix.parent)).model_dir() == str(prefix.parent)
    pair.set_model(str(prefix.parent))
    assert (pair.prog_file(), pair.params_file(), pair.model_dir()) == ("", "", str(prefix.parent))


def test_a_parameter_file_may_lie_elsewhere(prefix: Path, tmp_path: Path) -> None:
    other = prefix.with_suffix(".pdiparams").rename(tmp_path / "weights.bin")
    assert (answer(Config(f"{prefix}.pdmodel", str(other))) == X).all()


def test_a_model_in_memory(prefix: Path) -> None:
    program, params = (prefix.with_suffix(s).read_bytes() for s in (".pdmodel", ".pdiparams"))
    config = Config()
    config.set_model_buffer(program + b"rest", len(program), bytearray(params), len(params))
    assert config.model_from_memory() and config.prog_file() == config.model_dir() == ""
    assert (answer(config) == X).all() and (answer(Config(config)) == X).all()
    config.set_model(str(prefix.parent))
    assert not config.model_from_memory() and config.buffers() is None
    for size in (len(params) + 1, -1, "8", 2.0):
        with pytest.raises(InvalidArgumentError, match=f"size of the params buffer .* has {len(params)} bytes"):
            config.set_model_buffer(program, len(program), params, size)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="the program buffer is a str; expected bytes"):
        config.set_model_buffer("text", 4, params, 1)  # type: ignore[arg-type]


def test_a_copy_is_independent(prefix: Path) -> None:
    first = Config(str(prefix.parent))
    second = Config(first)
    with pytest.warns(NoEffectWarning):
        second.delete_pass("a_pass")
    second.enable_memory_optim()
    second.set_model("elsewhere")
    assert first.model_dir() == str(prefix.parent) and not first.memory_optim_enabled()
    assert first.pass_builder().deleted == set() and second.pass_builder().deleted == {"a_pass"}


def test_a_predictor_keeps_the_config_it_was_made_with(prefix: Path) -> None:
    config = Config(str(prefix.parent))
    predictor = create_predictor(config)
    config.enable_memory_optim()
    assert not predictor._config.memory_optim_enabled()


def test_no_model_or_none_there(tmp_path: Path) -> None:
    with pytest.raises(PreconditionNotMetError, match=r"the Config names no model; use Config\(model_dir\)"):
        create_predictor(Config())
    with pytest.raises(NotFoundError, match=r"no\.pdmodel' is no file"):
        create_predictor(Config(str(tmp_path / "no.pdmodel"), str(tmp_path / "no.pdiparams")))


# Settings -------------------------------------------------------------------------------------------------------------
def test_answers_before_anything_is_set_are_those_of_paddle() -> None:
    config = Config()
    expected = {
        "cpu_math_library_num_threads": 1, "ir_optim": True, "model_dir": "", "prog_file": "", "params_file": "",
        "use_gpu": False, "gpu_device_id": 0, "memory_pool_init_size_mb": 100, "fraction_of_gpu_memory_for_pool": 0.0,
        "mkldnn_enabled": True, "specify_input_name": False, "use_feed_fetch_ops_enabled": False,
        "glog_info_disabled": False, "model_from_memory": False, "xpu_device_id": 0, "lite_engine_enabled": False,
        "tensorrt_optimization_level": 3, "tensorrt_precision_mode": PrecisionType.Float32,
        "shape_range_info_path": "",
    }  # fmt: skip
    assert {name: getattr(config, name)() for name in expected} == expected


def test_settings_are_read_back() -> None:
    config = Config()
    config.enable_use_gpu(200, 3)
    assert (config.use_gpu(), config.gpu_device_id(), config.memory_pool_init_size_mb()) == (True, 3, 200)
    config.disable_gpu()
    config.set_cpu_math_library_num_threads(4)
    config.switch_ir_optim(False)
    config.switch_ir_debug()
    config.disable_mkldnn()
    config.set_mkldnn_cache_capacity(3)
    config.enable_memory_optim()
    config.enable_profile()
    config.disable_glog_info()
    config.switch_specify_input_names(True)
    config.switch_use_feed_fetch_ops(False)
    assert not config.use_gpu() and config.cpu_math_library_num_threads() == 4 and not config.ir_optim()
    assert not config.mkldnn_enabled() and config.memory_optim_enabled() and config.profile_enabled()
    assert config.glog_info_disabled() and config.specify_input_name()
    config.enable_mkldnn()
    assert config.mkldnn_enabled()


def test_summary_lists_what_is_set() -> None:
    config = Config("dir")
    config.enable_use_gpu(100, 2)
    config.set_cpu_math_library_num_threads(2)
    with pytest.warns(NoEffectWarning):
        config.delete_pass("a_pass")
    lines = config.summary().splitlines()
    assert len({len(line) for line in lines}) == 1, "a table has straight edges"
    rows = dict(re.findall(r"^\| (\S+) +\| (.*?) +\|$", config.summary(), re.M))
    assert rows["model_dir"] == "dir" and rows["gpu_device_id"] == "2" and rows["deleted_passes"] == "a_pass"
    assert rows["cpu_math_thread"] == "2" and rows["enable_log"] == "true" and rows["memory_optim"] == "false"
    memory = Config()
    memory.set_model_buffer(b"", 0, b"", 0)
    assert "| model_from_memory " in memory.summary() and "library's own" in memory.summary()
    assert "| params_file " in Config("a", "b").summary()


def test_settings_without_effect_say_so_once() -> None:
    assert len(settings.NO_EFFECT) > 30
    for name, reason in settings.NO_EFFECT.items():
        with pytest.warns(NoEffectWarning, match=f"Config.{name} has no effect in oprack: {re.escape(reason)}") as said:
            getattr(Config(), name)(1, something=2)
        assert said[0].filename == __file__ and len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(Config(), name)()
    assert not any(getattr(Config(), name)() for name in settings.ALWAYS_FALSE)


def test_other_settings_that_change_nothing_say_so_too() -> None:
    config = Config()
    for call, text in (
        (lambda: config.switch_use_feed_fetch_ops(True), "inputs and outputs are handles"),
        (lambda: config.enable_use_gpu(1, 0, PrecisionType.Half), "models run in their own dtypes"),
        (lambda: config.delete_pass("fc_fuse_pass"), "'fc_fuse_pass' is no pass of an installed pack"),
        (lambda: config.pass_builder().append_pass("fc_fuse_pass"), "'fc_fuse_pass' is no pass of an installed pack"),
    ):
        with pytest.warns(NoEffectWarning, match=text) as said:
            call()
        assert said[0].filename == __file__


def test_a_device_that_is_not_served_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"enable_custom_device\('npu'\): .* leave this call out"):
        Config().enable_custom_device("npu", 0)


def test_passes_are_deleted_by_name_or_place() -> None:
    config, only = Config(), [e for e in entry_points(group="oprack.packs") if e.name == "ir"]
    with use_manager(PackManager(entry_points=only, environ={})):
        generic = ["remove_dead_code", "name_every_write", "remove_identities", "fold_constants"]
        assert config.pass_builder().all_passes() == generic
        passes = config.pass_builder()
        with pytest.warns(NoEffectWarning, match="'last' is no pass"):
            passes.append_pass("last")
        passes.insert_pass(0, "fold_constants")
        config.delete_pass("last")
        passes.delete_pass("fold_constants")
        passes.delete_pass(0)
        assert passes.all_passes() == generic[1:3]
        assert repr(passes) == "PassBuilder(['name_every_write', 'remove_identities'])"
        assert passes.deleted == {"last", "fold_constants", "remove_dead_code"}


# Threads of the math library ------------------------------------------------------------------------------------------
def test_threads_are_limited_while_a_predictor_runs(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []
    library = types.SimpleNamespace(num_threads=8)

    class ThreadpoolController:
        def __init__(self) -> None:
            self.lib_controllers = [library]
            limits.append("libraries looked for")

        @contextmanager
        def limit(self, limits: int, given: list[Any] = limits) -> Iterator[None]:
            given.append(limits)
            yield
            given.append("back")

    monkeypatch.setitem(sys.modules, "threadpoolctl", types.SimpleNamespace(ThreadpoolController=ThreadpoolController))
    config = Config(str(prefix.parent))
    answer(config)
    assert limits == []
    config.set_cpu_math_library_num_threads(3)
    predictor = create_predictor(config)
    for _ in range(6):  # the first ones import what they need
        predictor.run([np.array([0, 0])])
    assert limits[-6:] == [3, "back"] * 3
    monkeypatch.setitem(sys.modules, "another_library", types.ModuleType("another_library"))
    limits.clear()
    predictor.run([np.array([0, 0])])
    assert limits == ["libraries looked for", 3, "back"]
    library.num_threads = 3
    limits.clear()
    predictor.run([np.array([0, 0])])
    assert limits == []  # it is the limit already
    with pytest.raises(InvalidArgumentError, match=r"set_cpu_math_library_num_threads\(0\): expected 1 or more"):
        config.set_cpu_math_library_num_threads(0)


def test_without_threadpoolctl_the_limit_is_said_to_have_no_effect(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    config = Config(str(prefix.parent))
    config.set_cpu_math_library_num_threads(1)
    with pytest.warns(NoEffectWarning, match="it needs the package threadpoolctl"):
        assert (answer(config) == X).all()
    assert (answer(config) == X).all()  # said once: a second warning would be an error


# Enums and versions ---------------------------------------------------------------------------------------------------
def test_enums_have_paddles_numbers() -> None:
    assert {m.name: int(m) for m in DataType} == {
        "FLOAT32": 0, "INT64": 1, "INT32": 2, "UINT8": 3, "INT8": 4, "FLOAT16": 5, "BOOL": 6, "FLOAT64": 7
    }  # fmt: skip
    assert {m.name: int(m) for m in PlaceType} == {"UNK": -1, "CPU": 0, "GPU": 1, "XPU": 2, "CUSTOM": 4}
    assert {m.name: int(m) for m in PrecisionType} == {"Float32": 0, "Int8": 1, "Half": 2, "Bfloat16": 3}
    assert Config.Precision.Half is PrecisionType.Half is Config.Half
    for member in DataType:
        assert get_num_bytes_of_data_type(member) == np.dtype(member.name.lower()).itemsize


def test_versions() -> None:
    import oprack

    assert inference.get_version() == f"version: 2.6.2\noprack: {oprack.__version__}\n"
    assert inference.get_trt_compile_version() == inference.get_trt_runtime_version() == (0, 0, 0)


# as_paddle ------------------------------------------------------------------------------------------------------------
CLIENT = """
import paddle
import paddle.inference as paddle_infer
from paddle.inference import Config, create_predictor

def main(prefix, batch):
    config = paddle_infer.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    if paddle.is_compiled_with_cuda():
        config.enable_use_gpu(100, 0)
    else:
        config.disable_gpu()
        config.set_cpu_math_library_num_threads(1)
    config.enable_memory_optim()
    config.disable_glog_info()
    config.switch_ir_optim(True)
    config.switch_use_feed_fetch_ops(False)
    predictor = create_predictor(config)
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.reshape(batch.shape)
    handle.copy_from_cpu(batch)
    predictor.run()
    output = predictor.get_output_handle(predictor.get_output_names()[0])
    predictor.clear_intermediate_tensor()
    predictor.try_shrink_memory()
    return output.copy_to_cpu(), output.type() == paddle_infer.DataType.FLOAT32, paddle.__version__
"""


@pytest.fixture
def no_paddle(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "paddle"]:
        monkeypatch.delitem(sys.modules, name)


def test_a_client_of_paddle_inference_runs_without_a_change(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_paddle: None
) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    (tmp_path / "client_of_paddle.py").write_text(CLIENT)
    monkeypatch.syspath_prepend(tmp_path)
    with as_paddle():
        client = importlib.import_module("client_of_paddle")
        with pytest.warns(NoEffectWarning, match="threadpoolctl"):
            y, is_float, version = client.main(str(prefix), np.array([0, 0, 0]))
    assert (y == np.repeat(X, 3, 0)).all() and is_float and version == "2.6.2"
    assert "paddle" not in sys.modules and "paddle.inference" not in sys.modules
    del sys.modules["client_of_paddle"]


def test_as_paddle_stays_until_it_is_uninstalled(no_paddle: None) -> None:
    outer = as_paddle()
    with as_paddle():
        import paddle.inference

        assert paddle.inference.Config is Config
    import paddle.device
    import paddle.version

    assert paddle.device.get_device() == "cpu" and paddle.version.full_version == paddle.__version__
    assert not (paddle.device.is_compiled_with_cuda() or paddle.device.is_compiled_with_xpu())
    outer.uninstall()
    assert "paddle" not in sys.modules
    assert importlib.util.find_spec("paddle") is None or "oprack" not in str(importlib.util.find_spec("paddle"))


def test_names_of_paddle_3_that_clients_call(no_paddle: None) -> None:
    """What paddlex 3.7 and rapidocr 3.10 call before they create a predictor."""
    with as_paddle():
        assert importlib.util.find_spec("paddle") and importlib.util.find_spec("paddle.inference")
        import paddle
        import paddle.amp

        assert not (paddle.is_compiled_with_rocm() or paddle.device.is_compiled_with_rocm())
        assert not paddle.is_compiled_with_xpu()
        assert not (paddle.amp.is_bfloat16_supported() or paddle.device.get_all_custom_device_type())
        assert paddle.set_device("cpu") == CPUPlace()
        assert paddle.get_device() == paddle.device.get_device() == "cpu"
        with pytest.raises(NotFoundError, match=r"set_device: 'tpu' is no device here; expected 'cpu' or 'gpu:0'"):
            paddle.device.set_device("tpu")
        utils = paddle.inference.InternalUtils
        for call in (utils.set_transformer_posid, utils.set_transformer_maskid):
            with pytest.warns(NoEffectWarning, match="TensorRT"):
                call(Config(), "x")
        with pytest.warns(NoEffectWarning, match="TensorRT"):
            utils.disable_tensorrt_half_ops({"x"})


def test_a_client_of_inference_alone_changes_no_tensors(no_paddle: None) -> None:
    before = list(_preferred)
    with as_paddle():
        import paddle
        import paddle.inference

        assert paddle.inference.PrecisionType and paddle.get_device() == "cpu" and paddle.__version__ == "2.6.2"
    assert _preferred == before


def test_onednn_has_two_names() -> None:
    config = Config()
    config.disable_onednn()
    assert not config.onednn_enabled() and not config.mkldnn_enabled()
    config.enable_onednn()
    assert config.mkldnn_enabled()


def test_without_the_plugin_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(module: str) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module.partition(".")[0])

    monkeypatch.setattr("oprack.inference.plugins.import_module", absent)
    with pytest.raises(MissingPackError, match=r"as_paddle\(\): .* not installed: pip install oprack-paddle"):
        as_paddle()


def test_the_real_paddle_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    real = types.ModuleType("paddle")
    real.__file__ = "/somewhere/paddle/__init__.py"
    monkeypatch.setitem(sys.modules, "paddle", real)
    with pytest.raises(
        PreconditionNotMetError, match=r"imported already from /somewhere/paddle/__init__\.py; call as_"
    ):
        as_paddle()
    assert sys.modules["paddle"] is real
