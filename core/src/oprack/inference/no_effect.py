"""Settings of paddle.inference that have no effect here: accepted, and said once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


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
    "disable_onnxruntime": _ENGINES,
    "enable_cinn": _COMPILERS,
    "enable_custom_passes": _COMPILERS,
    "enable_dlnne": _ENGINES,
    "enable_ipu": _DEVICES,
    "enable_lite_engine": _ENGINES,
    "enable_low_precision_io": _ONEDNN_INT8,
    "enable_new_executor": "there is one executor",
    "enable_new_ir": _OTHER_IR,
    "enable_onnxruntime": _ENGINES,
    "enable_opencl": _DEVICES,
    "enable_openvino_engine": _ENGINES,
    "enable_ort_optimization": _ENGINES,
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
    "onnxruntime_enabled",
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


def _ignored(name: str, reason: str) -> Callable[..., None]:
    def setting(self: Any, *args: Any, **kwargs: Any) -> None:
        say_once(f"Config.{name}", reason)

    setting.__name__ = name
    setting.__doc__ = f"Accepted, without effect: {reason}."
    return setting


def _never(name: str) -> Callable[..., bool]:
    def question(self: Any) -> bool:
        return False

    question.__name__ = name
    question.__doc__ = "Always False."
    return question


class NoEffectSettings:
    """Base of Config with every method of NO_EFFECT and ALWAYS_FALSE."""


for _name, _reason in NO_EFFECT.items():
    setattr(NoEffectSettings, _name, _ignored(_name, _reason))
for _name in ALWAYS_FALSE:
    setattr(NoEffectSettings, _name, _never(_name))


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
