"""Whatever operands a kernel gets, it reads and writes their memory alone, and gives what NumPy's kernel gives.

The walk over all kernels puts every operand in turn in other dtypes, sizes and layouts, between canaries: NaN around
what is read shows in the results, a pattern around what is written must be there afterwards.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from native_calls import SPECS, calls_of, has_avx512, native_runs
from oprack.kernel import KernelQuery, bind_signature
from oprack.packs.manager import default_manager
from oprack.tensor import LoDTensor
from oprack_onednn import kernels
from oprack_onednn.chain import descs, memory, parameters, primitive_chain, thread
from oprack_onednn.chain.primitive_chain import OneDNNError, PrimitiveChain
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import External, OperandError, Region
from oprack_onednn.stretch import callsite

GUARD = 256
PATTERN = np.frombuffer(b"\x01\x00\xc0\x7f" * (GUARD // 4), np.uint8)  # NaN, as float32


class Canaries:
    """Places arrays between canaries."""

    def __init__(self):
        self.buffers = []

    def place(self, nbytes, shift=0):
        """Memory of so many bytes; it begins `shift` bytes after a multiple of 64."""
        buffer = np.resize(PATTERN, nbytes + 3 * GUARD)
        start = GUARD + -(buffer.ctypes.data + GUARD) % 64 + shift
        self.buffers.append((buffer, start, start + nbytes))
        return buffer[start : start + nbytes]

    def copy(self, array, shift=0):
        """A copy in the same order of memory."""
        order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
        made = np.ndarray([array.shape[d] for d in order], array.dtype, self.place(array.nbytes, shift))
        made = made.transpose(np.argsort(order)) if order else made
        made[...] = array
        return made

    def empty(self, shape, dtype=float):
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        dtype = np.dtype(dtype)
        return np.ndarray(shape, dtype, self.place(int(np.prod(shape)) * dtype.itemsize))

    def empty_like(self, array):
        return self.copy(np.zeros_like(array))

    def alive(self):
        for buffer, start, end in self.buffers:
            pattern = np.resize(PATTERN, len(buffer))
            if (buffer[:start] != pattern[:start]).any() or (buffer[end:] != pattern[end:]).any():
                return False
        return True


class _NumPy:
    """NumPy, but for the functions that allocate results."""

    def __init__(self, canaries):
        self.empty, self.empty_like = canaries.empty, canaries.empty_like

    def __getattr__(self, name):
        return getattr(np, name)


def _modules():
    return [
        importlib.import_module(name) for _, name, _ in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}.")
    ]


@pytest.fixture
def canaries(monkeypatch):
    """Around everything that this plugin allocates, too."""
    made = Canaries()
    for module in (descs, memory, parameters, primitive_chain, thread, *_modules()):
        if hasattr(module, "np"):
            monkeypatch.setattr(module, "np", _NumPy(made))
    monkeypatch.setattr(memory.BUFFERS, "size_of", lambda nbytes: 0)  # each result in memory of its own
    thread.THREAD.primitives.clear()
    return made


def as_constants(monkeypatch):
    for module in (callsite, parameters, *_modules()):
        if hasattr(module, "is_constant"):
            monkeypatch.setattr(module, "is_constant", lambda array: array.flags.c_contiguous)


# What an operand may be instead ---------------------------------------------------------------------------------------
def _resized(array, axis, count):
    return np.take(array, np.arange(count) % max(array.shape[axis], 1), axis)


def variants(array, canaries):
    """(name, array in another form) of an operand."""
    place = canaries.copy
    yield "as it is", place(array)
    for dtype in ("float64", "float16", "int32", "int64", "uint8", "bool"):
        if dtype != array.dtype:
            yield dtype, place(np.abs(array).astype(dtype))
    for axis in {0, array.ndim - 1} if array.ndim else ():
        n = array.shape[axis]
        for count in {n // 2, n - 1, n + 1, 2 * n, 1, 0} - {n}:
            yield f"{count} of {n} along {axis}", place(_resized(array, axis, count))
    yield "one dim more", place(array[None])
    yield "flat", place(array.reshape(-1))
    if array.ndim:
        wide = place(np.repeat(array, 2, axis=-1))
        yield "every other", wide[..., ::2]
        yield "backwards", place(array[..., ::-1])[..., ::-1]
        yield "broadcast", np.broadcast_to(place(array[:1]), array.shape)
        yield "columns first", place(np.asfortranarray(array))
    frozen = place(array)
    frozen.flags.writeable = False
    yield "read-only", frozen
    yield "big-endian", place(array.astype(array.dtype.newbyteorder(">")))
    yield "misaligned", place(array, shift=1)


def outcome(function, *args):
    """Arrays by slot, or "error"."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*args)
    except OneDNNError:
        raise  # a primitive or a chain that does not fit is a mistake of this plugin
    except Exception:
        return "error"
    return {slot: value if isinstance(value, list | tuple) else [value] for slot, value in result.items()}


def reason(got, want):
    """Why two outcomes differ; "" when they do not."""
    if "error" in (got, want):
        return "" if got == want else f"{'NumPy' if want == 'error' else 'oneDNN'} alone refuses it"
    for slot, arrays in got.items():  # what is for a gradient alone may be left out
        for a, b in zip(arrays, want[slot], strict=True):
            a, b = (np.asarray(v.array if isinstance(v, LoDTensor) else v) for v in (a, b))
            if a.shape != b.shape or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
                return f"{slot} is {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
            finite = b[np.isfinite(b)]
            near = 1e-3 * max(1.0, float(np.abs(finite).max(initial=0)))
            if not np.allclose(a, b, rtol=1e-3, atol=near, equal_nan=True):
                return f"{slot} has other numbers"
    return ""


OPS = sorted(SPECS)
# NumPy's kernel starts from what this library computes anew from the other operands
DERIVED = {("silu_grad", "Out")}
# Ops that NumPy computes on other processors -> whether this one has what oneDNN needs for them
NEEDS = dict.fromkeys(("softmax_grad", "log_softmax_grad"), has_avx512)
NEEDS |= dict.fromkeys(("onednn_quantized_conv2d", "onednn_quantized_matmul"), LIBRARY.has_int8)


def native_calls_of(op_type):
    calls = calls_of(op_type)
    if not NEEDS.get(op_type, lambda: True)():
        assert not calls, f"{op_type} is computed by oneDNN here, too: take it out of NEEDS"
        pytest.skip("oneDNN has no such primitive for this processor")
    assert calls, f"{op_type}: no recorded case is computed by oneDNN; add a call to native_calls.made"
    return calls


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("constant", [False, True], ids=["varying", "constant"])
@pytest.mark.parametrize("op_type", OPS)
def test_no_operand_leads_out_of_its_memory(op_type, constant, any_size, canaries, monkeypatch):
    if constant:  # arrays between canaries do not own their memory
        as_constants(monkeypatch)
    calls, failures, native = native_calls_of(op_type), [], 0
    for call in calls:
        prepared = call.prepared()
        for slot, values in call.inputs.items():
            for i, array in enumerate(values) if (op_type, slot) not in DERIVED else ():
                for name, other in variants(array, canaries):
                    changed = call.with_operand(slot, i, other)
                    want = outcome(changed.by_numpy)
                    runs = [("", changed.direct)]
                    if prepared is not None:
                        outcome(prepared, call)  # what it keeps is for operands as they should be
                        runs.append((" prepared", partial(prepared, changed)))
                    for how, run in runs:
                        with native_runs() as counted:
                            got = outcome(run)
                        native += bool(counted)
                        why = reason(got, want)
                        if why:
                            failures.append(f"{slot}[{i}] {name}{how}: {why}")
                    if not canaries.alive():
                        failures.append(f"{slot}[{i}] {name}: memory around the operands and results was written to")
                    canaries.buffers.clear()
    assert not failures, f"{op_type}, {len(failures)} times:\n" + "\n".join(failures[:20])
    assert native >= 3


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("constant", [False, True], ids=["varying", "constant"])
@pytest.mark.parametrize("op_type", OPS)
def test_an_operand_that_is_missing_is_done_without_or_refused(op_type, constant, any_size, monkeypatch):
    """The kernel alone, before which an op's shape rule refuses most of that: attributes may want it all the same."""
    if constant:
        as_constants(monkeypatch)
    slots, failures = default_manager().op_info(op_type).proto.inputs, []
    for call in native_calls_of(op_type):
        for slot in [slot for slot, values in call.inputs.items() if values]:
            without = replace(call, inputs={s: values for s, values in call.inputs.items() if s != slot})
            want = outcome(without.by_numpy)
            try:
                got = outcome(without.direct)
            except OneDNNError:
                got = "error"  # a primitive misses an argument, and says so
            why = reason(got, want) if slots[slot].dispensable else ""
            failures += [f"without {slot}: {why}"] if why else []
    assert not failures, f"{op_type}: " + "\n".join(failures)


# The guard itself -----------------------------------------------------------------------------------------------------
@pytest.fixture
def matrix():
    """Memory of a chain for [4, 6], whose rows are 8 elements apart, to be written."""
    thread.THREAD.ready()
    return External(MemoryDesc.strided((4, 6), (8, 1)), written=True)


def rows(dtype=np.float32, apart=8):
    return np.zeros((4, apart), dtype)[:, :6]


def test_an_array_with_the_elements_of_the_descriptor_in_any_order_of_dims(matrix):
    array = rows()
    for same in (array, array.T, array[None]):
        assert matrix.address(same) == array.ctypes.data


def _read_only():
    array = rows()
    array.flags.writeable = False
    return array


OTHERS = {
    "dtype": lambda: rows(np.int32),
    "byte order": lambda: rows(">f4"),
    "distance of rows": lambda: rows(apart=7),
    "too short": lambda: rows()[:3],
    "too long": lambda: np.zeros((5, 8), np.float32)[:, :6],
    "every other": lambda: np.zeros((4, 8), np.float32)[:, ::2],
    "backwards": lambda: rows()[::-1],
    "broadcast": lambda: np.broadcast_to(np.zeros((1, 6), np.float32), (4, 6)),
    "empty": lambda: rows()[:0],
    "read-only": _read_only,
    "misaligned": lambda: np.ndarray((4, 6), np.float32, np.zeros(200, np.uint8), 1, (32, 4)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_any_other_array_is_refused(matrix, what):
    matrix.address(rows())  # a form that fits is remembered
    for _ in range(2):
        with pytest.raises(OperandError):
            matrix.address(OTHERS[what]())


def test_a_part_of_an_array_reaches_to_its_end_at_most(matrix):
    whole = np.zeros((7, 8), np.float32)
    region, last = Region(whole), whole.nbytes - matrix.reach
    assert matrix.address((region, last)) == whole.ctypes.data + last
    for offset in (last + 4, -4, 2):
        with pytest.raises(OperandError):
            matrix.address((region, offset))
    whole.flags.writeable = False
    for other in (whole, whole.astype(np.int32)):
        with pytest.raises(OperandError):
            matrix.address((Region(other), 0))


def test_memory_of_a_chain_is_not_seen_beyond_its_end():
    thread.THREAD.ready()
    made, whole, row = PrimitiveChain(), MemoryDesc.strided((4, 6)), MemoryDesc.strided((6,))
    for given in (made.input(whole), made.temporary(whole)):
        made.alias(given, row, 4 * 18)
        for offset in (4 * 19, -4):
            with pytest.raises(OperandError):
                made.alias(given, row, offset)


# What native code does not read, or what kernels compare themselves that take bytes or bfloat16 as well
UNREAD = {"crf_decoding": {"Label", "Length"}, "rnn": {"SequenceLength"}}
UNREAD |= {"rnn_grad": {"SequenceLength", "DropoutState"}, "sequence_attention_grad": {"DropoutSeed"}}
UNREAD |= {op: {"Ids", "W"} for op in ("lookup_table_grad", "lookup_table_v2_grad")}
_NARROW = ("conv2d_post_ops", "onednn_conv2d_chain", "onednn_pointwise_conv2d")
UNREAD |= {op: {"Input", "Residual"} for op in _NARROW}
UNREAD |= {"elementwise_add_grad": {"X", "Y"}}
UNREAD |= {"onednn_quantized_conv2d": {"Input", "Filter"}, "onednn_quantized_matmul": {"X", "Y"}}


@pytest.mark.parametrize("op_type", OPS)
def test_a_kernel_is_chosen_when_all_that_it_reads_is_float32(op_type):
    spec, proto = SPECS[op_type], default_manager().op_info(op_type).proto
    slots = [slot for slot, *_ in bind_signature(spec.function, proto).inputs]
    floats = dict.fromkeys(slots, "float32")
    assert spec.when(KernelQuery(op_type, {}, floats))
    unread = {slot for slot in slots if spec.when(KernelQuery(op_type, {}, {**floats, slot: "uint8"}))}
    assert unread == UNREAD.get(op_type, set())
