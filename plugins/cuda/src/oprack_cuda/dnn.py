"""cuDNN through nvidia-cudnn-frontend: convolutions as graphs, built once per geometry and kept per thread and device.

A geometry for which cuDNN builds nothing is remembered with the reason (`refused`), and matrix products serve it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.cache import Cache
from oprack.kernel import Array, ArrayModule
from oprack.python.interruption import let_interruptions_pass
from oprack.python.records import dataclass

from oprack_cuda.library import CUDA, Library, LibraryPredicate, UnavailableError

if TYPE_CHECKING:
    from oprack_nn.kernels.conv import Geometry

    from oprack_cuda.context import CUDADeviceContext

# Graphs that are kept per thread and device
_GRAPHS = 1024


class DNNLibrary(Library):
    """The frontend and the libcudnn that it opens. cudnn: the module, once it is usable."""

    def __init__(self) -> None:
        super().__init__()
        self.cudnn: Any = None
        self.tf32 = False

    def _load(self) -> None:
        if not CUDA.usable():
            raise UnavailableError(CUDA.problem)
        try:
            import cudnn
        except ModuleNotFoundError as error:
            raise UnavailableError(
                "nvidia-cudnn-frontend is not installed; pip install 'oprack-cuda[cudnn13]', or [cudnn12] beside CuPy "
                f"for CUDA 12 ({error})"
            ) from None
        except Exception as error:  # a broken installation says so in many ways
            let_interruptions_pass()
            raise UnavailableError(f"nvidia-cudnn-frontend can't be imported: {error}") from error
        try:
            cudnn.backend_version()
        except Exception as error:
            let_interruptions_pass()
            raise UnavailableError(
                f"libcudnn can't be opened: {error}; pip install nvidia-cudnn-cu13 (or -cu12)"
            ) from error
        self.cudnn = cudnn

    def _describe(self) -> str:
        version = self.cudnn.backend_version()
        number = f"{version // 10000}.{version // 100 % 100}.{version % 100}"
        return f"cuDNN {number}, frontend {self.cudnn.__version__}, TF32 {'allowed' if self.tf32 else 'off'}"


CUDNN = DNNLibrary()

usable = LibraryPredicate(CUDNN, "cuDNN")
"""Predicate of every kernel of library "cudnn"."""


@dataclass(frozen=True)
class Operand:
    """A tensor of a graph: its dims and strides, in elements."""

    dim: tuple[int, ...]
    stride: tuple[int, ...]

    @classmethod
    def of(cls, array: Array) -> Operand:
        return cls(tuple(array.shape), tuple(s // array.itemsize for s in array.strides))


@dataclass(frozen=True)
class Convolution:
    """One of the three maps of a convolution. name: conv_fprop, conv_dgrad or conv_wgrad. a, b: in its order."""

    name: str
    dtype: str
    a: Operand
    b: Operand
    out: Operand
    pads: tuple[tuple[int, int], ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]


class Graph:
    """A built graph of one operation with two operands."""

    def __init__(self, key: Convolution, handle: Any) -> None:
        cudnn = CUDNN.cudnn
        dtype = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}[key.dtype]
        io = getattr(cudnn.data_type, dtype)
        compute = io if key.dtype == "float64" else cudnn.data_type.FLOAT
        self._graph = cudnn.pygraph(
            io_data_type=io, intermediate_data_type=compute, compute_data_type=compute, handle=handle
        )
        self._a, self._b = (
            self._graph.tensor(name=n, dim=list(o.dim), stride=list(o.stride), data_type=io)
            for n, o in (("a", key.a), ("b", key.b))
        )
        self._out = getattr(self._graph, key.name)(
            self._a,
            self._b,
            pre_padding=[p for p, _ in key.pads],
            post_padding=[p for _, p in key.pads],
            stride=list(key.strides),
            dilation=list(key.dilations),
        )
        self._out.set_output(True).set_data_type(io).set_dim(list(key.out.dim)).set_stride(list(key.out.stride))
        self._graph.validate()
        self._graph.build_operation_graph()
        self._graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        notes = cudnn.numerical_note
        unwanted = [notes.NONDETERMINISTIC]  # the same numbers on every run
        if key.dtype == "float32" and not CUDNN.tf32:
            unwanted.append(notes.TENSOR_CORE)  # which rounds float32 operands to TF32
        self._graph.deselect_numeric_notes(unwanted)
        self._graph.check_support()
        self._graph.build_plans()
        self.workspace = int(self._graph.get_workspace_size())

    def run(self, a: Array, b: Array, out: Array, xp: ArrayModule, handle: Any) -> None:
        """Enqueue it on the handle's stream."""
        workspace = xp.empty(max(self.workspace, 1), "uint8")
        # CuPy's arrays, seen as NumPy's
        pointers = {tensor: array.data.ptr for tensor, array in ((self._a, a), (self._b, b), (self._out, out))}  # type: ignore[attr-defined]
        self._graph.execute(pointers, workspace.data.ptr, handle=handle)


class _Thread(threading.local):
    """A thread's handles by device, its graphs, and geometries that cuDNN refused with the reason."""

    def __init__(self) -> None:
        self.handles: dict[int, Any] = {}
        self.graphs = Cache(_GRAPHS)
        self.refused: dict[tuple[Any, ...], str] = {}


_THREAD = _Thread()


def refused() -> dict[str, str]:
    """Geometries of the calling thread that cuDNN built nothing for, and why."""
    return {str(key[-1]): reason for key, reason in _THREAD.refused.items()}


def run(key: Convolution, a: Array, b: Array, out: Array, device: CUDADeviceContext) -> bool:
    """Fill `out`, on the context's stream; False when cuDNN has nothing for this geometry."""
    number = device.place.device_id
    known = (number, CUDNN.tf32, key)
    if known in _THREAD.refused:
        return False
    handle = _handle(number)
    CUDNN.cudnn.set_stream(handle=handle, stream=device.stream.ptr)
    graph: Graph | None = _THREAD.graphs[known]
    if graph is None:
        try:
            graph = Graph(key, handle)
        except Exception as error:  # the frontend raises its own and built-in errors, by version
            let_interruptions_pass()
            _THREAD.refused[known] = f"{type(error).__name__}: {error}"
            return False
        _THREAD.graphs[known] = graph
    graph.run(a, b, out, device.xp, handle)
    return True


def _handle(number: int) -> Any:
    if number not in _THREAD.handles:
        _THREAD.handles[number] = CUDNN.cudnn.create_handle()
    return _THREAD.handles[number]


def allow_tf32(allowed: bool) -> None:
    """Let float32 convolutions run on tensor cores, which round their operands to 10 bits of mantissa. Off at first."""
    CUDNN.tf32 = bool(allowed)


def convolution(
    name: str,
    a: Array,
    b: Array,
    shape: Sequence[int],
    geometry: Geometry,
    device: CUDADeviceContext,
    *,
    channel_last: bool = False,
) -> Array | None:
    """Result of one of the maps [shape] as the geometry of oprack_nn says; None when cuDNN can't do it.

    a, b: operands in the map's order, channels first, in any strides. channel_last: how the result lies in memory.
    """
    if any(p < 0 for pair in geometry.pads for p in pair) or not all((*a.shape, *b.shape, *shape)):
        return None
    xp = device.xp
    out = xp.empty(_last(shape), a.dtype) if channel_last else xp.empty(tuple(shape), a.dtype)
    if channel_last:
        out = out.transpose(0, out.ndim - 1, *range(1, out.ndim - 1))
    operands = Operand.of(a), Operand.of(b), Operand.of(out)
    key = Convolution(name, a.dtype.name, *operands, geometry.pads, geometry.strides, geometry.dilations)
    return out if run(key, a, b, out, device) else None


def _last(shape: Sequence[int]) -> tuple[int, ...]:
    return (shape[0], *shape[2:], shape[1])
