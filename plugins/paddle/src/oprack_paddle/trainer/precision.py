"""paddle.amp: mixed precision."""

from __future__ import annotations

from typing import Any

from oprack import amp

from oprack_paddle.functions._tools import dtype_name


class auto_cast(amp.autocast):
    """Mixed precision inside a with block; parameters and their gradients stay in float32."""

    def __init__(
        self, enable: bool = True, custom_white_list: Any = None, custom_black_list: Any = None, level: str = "O1",
        dtype: Any = "float16",
        use_promote: bool = True,
    ) -> None:  # fmt: skip
        # On a CPU Paddle 2.6 computes in float32 where it has no half kernels; bfloat16 is what it has some for.
        level = "O1" if level in ("OD", "O2") else level
        on_cpu = dtype_name(dtype) == "float16"
        super().__init__(
            dtype_name(dtype), enable=enable and not on_cpu, custom_white_list=custom_white_list,
            custom_black_list=custom_black_list,
            level=level,
        )  # fmt: skip


amp_guard = auto_cast


class GradScaler(amp.GradScaler):
    """Scales losses, so that small gradients are not lost in float16."""

    def __init__(
        self, enable: bool = True, init_loss_scaling: float = 65536.0, incr_ratio: float = 2.0, decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000, decr_every_n_nan_or_inf: int = 1, use_dynamic_loss_scaling: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            enable, init_loss_scaling, incr_ratio, decr_ratio, incr_every_n_steps, decr_every_n_nan_or_inf,
            use_dynamic_loss_scaling
        )  # fmt: skip
        self._settings = {
            "init_loss_scaling": init_loss_scaling, "incr_ratio": incr_ratio, "decr_ratio": decr_ratio,
            "incr_every_n_steps": incr_every_n_steps, "decr_every_n_nan_or_inf": decr_every_n_nan_or_inf,
        }  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        setting = name.removeprefix("get_")
        if name.startswith("get_") and setting in vars(self).get("_settings", {}):
            return lambda: self._settings[setting]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def minimize(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Update by the gradients that backward has left, and the factor with them."""
        self.step(optimizer)
        self.update()
        return [], []


AmpScaler = GradScaler


def decorate(
    models: Any, optimizers: Any = None, level: str = "O1", dtype: Any = "float16", master_weight: Any = None,
    save_dtype: Any = None,
    master_grad: bool = False, excluded_layers: Any = None,
) -> Any:  # fmt: skip
    """Models and optimizers as they are: casts happen in auto_cast, and parameters stay in float32."""
    return models if optimizers is None else (models, optimizers)


def is_float16_supported(device: Any = None) -> bool:
    """Whether products of float16 are fast: on no CPU."""
    return False


def is_bfloat16_supported(device: Any = None) -> bool:
    """Whether products of bfloat16 are computed as such."""
    return False
