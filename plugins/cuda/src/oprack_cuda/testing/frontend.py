"""The part of nvidia-cudnn-frontend that oprack_cuda.dnn calls, over memory of the host.

Operands are read through their pointers, dims and strides, and convolutions computed by the sources of oprack_nn.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
from oprack_nn.kernels.conv import Geometry, convolve, convolve_adjoint_filter, convolve_adjoint_input

__version__ = "0"
data_type = SimpleNamespace(HALF="float16", FLOAT="float32", DOUBLE="float64", BFLOAT16="bfloat16")
heur_mode = SimpleNamespace(A="A", FALLBACK="FALLBACK")
numerical_note = SimpleNamespace(TENSOR_CORE="TENSOR_CORE", NONDETERMINISTIC="NONDETERMINISTIC")
executed: list[str] = []
refused_ranks: set[int] = set()
streams: list[int] = []


def backend_version() -> int:
    return 91200


def create_handle() -> object:
    return object()


def set_stream(handle: object, stream: int) -> None:
    streams.append(stream)


class Tensor:
    def __init__(self, name: str = "", dim: Any = (), stride: Any = (), data_type: Any = None) -> None:
        self.name, self.dim, self.stride, self.data_type, self.output = name, dim, stride, data_type, False

    def set_output(self, value: Any) -> Tensor:
        self.output = value
        return self

    def set_data_type(self, value: Any) -> Tensor:
        self.data_type = value
        return self

    def set_dim(self, value: Any) -> Tensor:
        self.dim = value
        return self

    def set_stride(self, value: Any) -> Tensor:
        self.stride = value
        return self

    def view(self, pointer: int) -> np.ndarray:
        """The operand's memory as it is laid out."""
        dtype = np.dtype(self.data_type)
        size = 1 + sum((d - 1) * s for d, s in zip(self.dim, self.stride, strict=True))
        flat = np.frombuffer(memoryview((ctypes.c_char * (size * dtype.itemsize)).from_address(pointer)), dtype)
        strides = [s * dtype.itemsize for s in self.stride]
        return np.lib.stride_tricks.as_strided(flat, self.dim, strides)


class pygraph:
    def __init__(self, *, io_data_type: Any, intermediate_data_type: Any, compute_data_type: Any, handle: Any) -> None:
        self.deselected: list[str] = []

    def tensor(self, **facts: Any) -> Tensor:
        return Tensor(**facts)

    def _operation(
        self,
        name: Any,
        a: Any,
        b: Any,
        out: Any = None,
        *,
        pre_padding: Any,
        post_padding: Any,
        stride: Any,
        dilation: Any,
    ) -> Tensor:
        self.name, self.operands, self.out = name, (a, b), Tensor()
        self.pads, self.strides, self.dilations = tuple(zip(pre_padding, post_padding, strict=True)), stride, dilation
        return self.out

    def conv_fprop(self, image: Any, weight: Any, **options: Any) -> Tensor:
        return self._operation("conv_fprop", image, weight, **options)

    def conv_dgrad(self, loss: Any, filter: Any, **options: Any) -> Tensor:
        return self._operation("conv_dgrad", loss, filter, **options)

    def conv_wgrad(self, image: Any, loss: Any, **options: Any) -> Tensor:
        return self._operation("conv_wgrad", image, loss, **options)

    def _spatial(self) -> tuple[Any, Any, Any]:
        """(input dims, filter dims, output dims)"""
        a, b = self.operands
        dims = {
            "conv_fprop": (a.dim, b.dim, self.out.dim),
            "conv_dgrad": (self.out.dim, b.dim, a.dim),
            "conv_wgrad": (a.dim, self.out.dim, b.dim),
        }
        return dims[self.name]

    def validate(self) -> None:
        x, w, y = self._spatial()
        for n, k, m, s, (p, q), d in zip(x[2:], w[2:], y[2:], self.strides, self.pads, self.dilations, strict=True):
            if (n + p + q - (k - 1) * d - 1) // s + 1 != m:
                raise RuntimeError(f"{self.name}: dims {x}, {w}, {y} do not fit together")

    def build_operation_graph(self) -> None:
        pass

    def create_execution_plans(self, modes: Any) -> None:
        assert modes == ["A", "FALLBACK"]

    def deselect_numeric_notes(self, notes: Any) -> None:
        self.deselected += notes

    def check_support(self) -> None:
        if len(self.operands[0].dim) in refused_ranks:
            raise RuntimeError("no engine for this")

    def build_plans(self) -> None:
        pass

    def get_workspace_size(self) -> int:
        return 16

    def execute(self, pointers: Any, workspace: Any, handle: Any) -> None:
        assert workspace and handle
        a, b, out = (t.view(pointers[t]) for t in (*self.operands, self.out))
        x, w, _ = self._spatial()
        geometry = Geometry(tuple(w[2:]), tuple(self.strides), self.pads, tuple(self.dilations), x[1] // w[1])
        if self.name == "conv_fprop":
            out[...] = convolve(a, b, geometry, np)
        elif self.name == "conv_dgrad":
            out[...] = convolve_adjoint_input(a, b, tuple(x[2:]), geometry, np)
        else:
            out[...] = convolve_adjoint_filter(a, b, geometry, np)
        executed.append(self.name)
