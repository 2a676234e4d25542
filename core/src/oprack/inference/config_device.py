"""Settings of a predictor that say where it runs, and on how many threads."""

from __future__ import annotations

from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.inference.enums import PrecisionType
from oprack.inference.no_effect import say_once


class DeviceSettings:
    """The CPU, or a GPU that the plugin oprack-cuda serves."""

    def __init__(self) -> None:
        super().__init__()
        self._use_gpu = False
        self._gpu_device_id = 0
        self._gpu_pool_mb = 100
        self._threads: int | None = None

    def enable_use_gpu(
        self, memory_pool_init_size_mb: int, device_id: int = 0, precision_mode: PrecisionType = PrecisionType.Float32
    ) -> None:
        """Run at CUDAPlace(device_id), which the plugin oprack-cuda serves."""
        self._use_gpu, self._gpu_pool_mb, self._gpu_device_id = True, int(memory_pool_init_size_mb), int(device_id)
        if precision_mode is not PrecisionType.Float32:
            say_once("Config.enable_use_gpu(precision_mode=...)", "models run in their own dtypes")

    def disable_gpu(self) -> None:
        """Run at the CPU."""
        self._use_gpu = False

    def use_gpu(self) -> bool:
        """Whether enable_use_gpu was called last."""
        return self._use_gpu

    def gpu_device_id(self) -> int:
        """Number of the GPU that enable_use_gpu named."""
        return self._gpu_device_id

    def memory_pool_init_size_mb(self) -> int:
        """What enable_use_gpu was given; 100 before, as in Paddle."""
        return self._gpu_pool_mb

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """Always 0: the pool of CuPy grows as needed."""
        return 0.0

    def xpu_device_id(self) -> int:
        """Always 0: no plugin serves such a device."""
        return 0

    def enable_custom_device(self, device_type: str, device_id: int = 0, *_: Any) -> None:
        """Refuse another device: places come from plugins, and a predictor runs at CPU or CUDA.

        Args:
            device_type: Its name.
            device_id: Its number.

        Raises:
            InvalidArgumentError: In every case.
        """
        raise InvalidArgumentError(
            f"enable_custom_device({device_type!r}): predictors run at the CPU or, with oprack-cuda, at CUDA; "
            "leave this call out"
        )

    def set_cpu_math_library_num_threads(self, threads: int) -> None:
        """Threads of the math library while a predictor runs; needs threadpoolctl, and says so once without it.

        Args:
            threads: How many.

        Raises:
            InvalidArgumentError: It is a number below 1.
        """
        if int(threads) < 1:
            raise InvalidArgumentError(f"set_cpu_math_library_num_threads({threads}): expected 1 or more")
        self._threads = int(threads)

    def cpu_math_library_num_threads(self) -> int:
        """What set_cpu_math_library_num_threads was given; 1 before, as in Paddle."""
        return self._threads or 1

    def has_thread_limit(self) -> bool:
        """Whether set_cpu_math_library_num_threads was called; else the math library decides."""
        return self._threads is not None
