"""Parts of Config: settings that have no effect here, the builder of passes, and the table for people."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from oprack.inference.enums import PrecisionType

C = TypeVar("C", bound=type)


class NoEffectWarning(UserWarning):
    """A setting was accepted but changes nothing in oprack."""


_SAID: set[str] = set()


def say_once(setting: str, reason: str, stacklevel: int = 3) -> None:
    """Warn that `setting` has no effect, the first time in this process."""
    if setting not in _SAID:
        _SAID.add(setting)
        warnings.warn(f"{setting} has no effect in oprack: {reason}", NoEffectWarning, stacklevel=stacklevel)


_TENSORRT = "there is no TensorRT; kernels come from op packs"
_ONEDNN_INT8 = "models run in their own dtypes"
_DEVICES = "this kind of device is not served"
_COMPILERS = "there is no compiler of graphs; passes and kernels come from op packs"
_OTHER_IR = "programs of both kinds run by the same executor"
_ENGINES = "the other engine is not part of oprack"

NO_EFFECT: dict[str, str] = {
    "collect_shape_range_info": _TENSORRT,
    "disable_mkldnn_fc_passes": _ONEDNN_INT8,
    "disable_onednn_fc_passes": _ONEDNN_INT8,
    "enable_cinn": _COMPILERS,
    "enable_custom_passes": _COMPILERS,
    "enable_dlnne": _ENGINES,
    "enable_ipu": _DEVICES,
    "enable_lite_engine": _ENGINES,
    "enable_low_precision_io": _ONEDNN_INT8,
    "enable_new_executor": "there is one executor",
    "enable_new_ir": _OTHER_IR,
    "enable_opencl": _DEVICES,
    "enable_openvino_engine": _ENGINES,
    "enable_ort_optimization": "ONNX Runtime optimises its graphs in any case",
    "enable_quantizer": _ONEDNN_INT8,
    "enable_save_optim_model": "set_optim_cache_dir keeps the optimised program on disk",
    "enable_tensorrt_dla": _TENSORRT,
    "enable_tensorrt_engine": _TENSORRT,
    "enable_tensorrt_explicit_quantization": _TENSORRT,
    "enable_tensorrt_inspector": _TENSORRT,
    "enable_tensorrt_memory_optim": _TENSORRT,
    "enable_tensorrt_varseqlen": _TENSORRT,
    "enable_tuned_tensorrt_dynamic_shape": _TENSORRT,
    "enable_xpu": _DEVICES,
    "exp_disable_mixed_precision_ops": _ONEDNN_INT8,
    "exp_disable_tensorrt_dynamic_shape_ops": _TENSORRT,
    "exp_disable_tensorrt_ops": _TENSORRT,
    "exp_disable_tensorrt_subgraph": _TENSORRT,
    "exp_enable_mixed_precision_ops": _ONEDNN_INT8,
    "exp_enable_use_cutlass": _DEVICES,
    "exp_sparse_conv_using_buffer": _DEVICES,
    "exp_specify_tensorrt_subgraph_precision": _TENSORRT,
    "load_ipu_config": _DEVICES,
    "mark_trt_engine_outputs": _TENSORRT,
    "set_dist_config": "a predictor runs in one process",
    "set_ipu_config": _DEVICES,
    "set_ipu_custom_info": _DEVICES,
    "set_mkldnn_op": _ONEDNN_INT8,
    "set_onednn_op": _ONEDNN_INT8,
    "set_optimization_level": "all passes run, and switch_ir_optim(False) leaves them out",
    "set_tensorrt_optimization_level": _TENSORRT,
    "set_trt_dynamic_shape_info": _TENSORRT,
    "set_xpu_config": _DEVICES,
    "set_xpu_device_id": _DEVICES,
    "trt_allow_build_at_runtime": _TENSORRT,
    "use_optimized_model": "set_optim_cache_dir keeps the optimised program on disk",
}
"""Methods of Paddle's Config that only set such a setting, and why each has no effect."""

ALWAYS_FALSE = (
    "lite_engine_enabled",
    "new_ir_enabled",
    "openvino_engine_enabled",
    "shape_range_info_collected",
    "tensorrt_dla_enabled",
    "tensorrt_dynamic_shape_enabled",
    "tensorrt_engine_enabled",
    "tensorrt_explicit_quantization_enabled",
    "tensorrt_inspector_enabled",
    "tensorrt_varseqlen_enabled",
    "tuned_tensorrt_dynamic_shape",
    "use_opencl",
    "use_xpu",
)
"""Questions of Paddle's Config whose answer here is always False."""

UNSET = {
    "shape_range_info_path": "",
    "tensorrt_optimization_level": 3,
    "tensorrt_precision_mode": PrecisionType.Float32,
}
"""Questions whose answer is always what Paddle has before anything is set."""


def _ignored(name: str, reason: str) -> Callable[..., None]:
    def setting(self: Any, *args: Any, **kwargs: Any) -> None:
        say_once(f"Config.{name}", reason)

    setting.__name__ = name
    setting.__doc__ = f"Accepted, without effect: {reason}."
    return setting


def _always(name: str, value: Any) -> Callable[..., Any]:
    def question(self: Any) -> Any:
        return value

    question.__name__ = name
    question.__doc__ = f"Always {value!r}."
    return question


def with_no_effect(config: C) -> C:
    """Give Config every method of NO_EFFECT, ALWAYS_FALSE and UNSET that it has not itself.

    Args:
        config: The class.

    Returns:
        The class.
    """
    methods = {name: _ignored(name, reason) for name, reason in NO_EFFECT.items()}
    methods |= {name: _always(name, value) for name, value in (dict.fromkeys(ALWAYS_FALSE, False) | UNSET).items()}
    for name, method in methods.items():
        if name not in vars(config):
            setattr(config, name, method)
    return config


class InternalUtils:
    """Settings that Paddle keeps apart from Config; all are TensorRT's, so they have no effect."""

    @staticmethod
    def set_transformer_posid(config: Any, tensor_name: str) -> None:
        """Accepted, without effect."""
        say_once("InternalUtils.set_transformer_posid", _TENSORRT)

    @staticmethod
    def set_transformer_maskid(config: Any, tensor_name: str) -> None:
        """Accepted, without effect."""
        say_once("InternalUtils.set_transformer_maskid", _TENSORRT)

    @staticmethod
    def disable_tensorrt_half_ops(ops: Any) -> None:
        """Accepted, without effect."""
        say_once("InternalUtils.disable_tensorrt_half_ops", _TENSORRT)


class PassBuilder:
    """Names of passes in order.

    The client's changes are kept apart from the list that they are made to, which may still change with the Config.

    Args:
        passes: The names.

    Attributes:
        deleted: Names that the client took out.
        enabled: Names of optional passes that the client asked for.
        debug: Whether graphs are verified after every pass.
    """

    def __init__(self, passes: Sequence[str] = ()) -> None:
        self._selected = list(passes)
        self._known = set(passes)
        self._added: list[tuple[int | None, str]] = []
        self.deleted: set[str] = set()
        self.enabled: set[str] = set()
        self.debug = False

    def show(self, selected: Sequence[str], known: Sequence[str]) -> PassBuilder:
        """Take the passes that the Config selects now, of all that there are; returns itself."""
        self._selected, self._known = list(selected), set(known)
        return self

    def changes(self) -> list[list[object]]:
        """What the client changed: the names that it took out, [position, name] of those that it put in, and the names
        of optional ones that it asked for."""
        return [[*sorted(self.deleted)], [list(pair) for pair in self._added], [*sorted(self.enabled)]]

    def all_passes(self) -> list[str]:
        """The passes that will run, in order."""
        names = [n for n in self._selected if n not in self.deleted]
        for index, name in self._added:
            names.insert(len(names) if index is None else index, name)
        return names

    def append_pass(self, name: str) -> None:
        """Add a pass at the end."""
        self._add(None, name)

    def insert_pass(self, index: int, name: str) -> None:
        """Add a pass at a position."""
        self._add(index, name)

    def _add(self, index: int | None, name: str) -> None:
        if name not in self._known:
            self._say_unknown("PassBuilder.append_pass", name, 5)
        self._added.append((index, name))

    def enable_pass(self, name: str) -> None:
        """Let an optional pass run, at its place."""
        self.enabled.add(name)
        self.deleted.discard(name)

    def delete_pass(self, name: str | int, stacklevel: int = 4) -> None:
        """Take a pass out, by name or position. Said once when it is no pass of an installed pack."""
        if isinstance(name, int):
            name = self.all_passes()[name]
        known = name in self._known or any(name == added for _, added in self._added)
        self._added = [(i, n) for i, n in self._added if n != name]
        self.deleted.add(name)
        if not known:
            self._say_unknown("Config.delete_pass", name, stacklevel)

    def _say_unknown(self, setting: str, name: str, stacklevel: int) -> None:
        say_once(f"{setting} of Paddle's own passes", f"{name!r} is no pass of an installed pack", stacklevel)

    def turn_on_debug(self) -> None:
        """Verify the graph after every pass."""
        self.debug = True

    def __repr__(self) -> str:
        return f"PassBuilder({self.all_passes()})"


Row = tuple[str, str] | None
"""Name and value; None stands for a line across."""

_ALWAYS, _WHEN_SET = False, True
# (setting of Config, whether its row is left out unless it is set, name in the table) by groups with lines in between
_GROUPS = (
    (
        ("_model_dir", _WHEN_SET, "model_dir"),
        ("_prog_file", _WHEN_SET, "model_file"),
        ("_params_file", _ALWAYS, "params_file"),
        ("_buffers", _WHEN_SET, "model_from_memory"),
    ),
    (
        ("_threads", _ALWAYS, "cpu_math_thread"),
        ("_mkldnn", _ALWAYS, "enable_mkldnn"),
        ("_mkldnn_cache_capacity", _ALWAYS, "mkldnn_cache_capacity"),
        ("_bfloat16", _WHEN_SET, "bfloat16"),
        ("_bfloat16_ops", _WHEN_SET, "bfloat16_ops"),
        ("_int8", _WHEN_SET, "int8"),
        ("_int8_ops", _WHEN_SET, "int8_ops"),
    ),
    (
        ("_use_gpu", _ALWAYS, "use_gpu"),
        ("_gpu_device_id", _ALWAYS, "gpu_device_id"),
    ),
    (
        ("_ir_optim", _ALWAYS, "ir_optim"),
        ("_ir_debug", _ALWAYS, "ir_debug"),
        ("_strict_sums", _WHEN_SET, "strict_sums"),
        ("_deterministic", _WHEN_SET, "deterministic"),
        ("_library_attrs", _WHEN_SET, "library_attrs"),
        ("_passes", _WHEN_SET, "deleted_passes"),
        ("_optim_cache_dir", _WHEN_SET, "optim_cache_dir"),
        ("_memory_limit", _WHEN_SET, "memory_limit"),
        ("_loop_limit", _WHEN_SET, "loop_limit"),
        ("_memory_optim", _ALWAYS, "memory_optim"),
        ("_profile", _ALWAYS, "enable_profile"),
        ("_log", _ALWAYS, "enable_log"),
    ),
)


def settings_table(settings: Mapping[str, Any]) -> str:
    """The table.

    Args:
        settings: What a Config holds, by the names of its attributes.

    Returns:
        Lines of equal length.
    """
    rows: list[Row] = [("Option", "Value")]
    for group in _GROUPS:
        rows += [None, *_rows(settings, group)]
    left, right = (max(len(row[i]) for row in rows if row) for i in (0, 1))
    line = f"+-{'-' * left}-+-{'-' * right}-+"
    body = [line if row is None else f"| {row[0]:<{left}} | {row[1]:<{right}} |" for row in rows]
    return "\n".join([line, *body, line])


def _rows(settings: Mapping[str, Any], group: Iterable[tuple[str, bool, str]]) -> list[Row]:
    rows: list[Row] = []
    for attribute, when_set, name in group:
        text = _text(attribute, settings[attribute])
        unset = text in ("", "false", "None")
        if not (when_set and unset) and _applies(attribute, settings):
            rows.append((name, text))
    return rows


def _applies(attribute: str, settings: Mapping[str, Any]) -> bool:
    """Whether a setting means anything beside the others: a GPU's number without a GPU does not."""
    needs = {"_gpu_device_id": "_use_gpu", "_params_file": "_prog_file"}.get(attribute)
    return needs is None or bool(settings[needs])


def _text(attribute: str, value: Any) -> str:
    if attribute == "_threads":
        return str(value or "library's own")
    if attribute == "_buffers":
        return "true" if value else "false"
    if attribute == "_passes":
        return ", ".join(sorted(value.deleted))
    return str(value).lower() if isinstance(value, bool) else str(value)
