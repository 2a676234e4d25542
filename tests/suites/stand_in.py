"""What test files of Paddle import beside Paddle: `op_test`, `op`, `utils` and devices' own modules, on oprack.

`install()` puts modules of these names into sys.modules. OpTest has the interface that the files use; a check is that
of `oprack.testing`, with Paddle's way to compare: values within the tolerance that the test asks for, whatever their
dtype, and bfloat16 as the uint16 that holds its bits.
"""

from __future__ import annotations

import contextlib
import random
import sys
import unittest
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing.any_kind import elements
from oprack.testing.op_case import OpCase, build

NUMERIC = 1e-3
"""Least tolerance of gradients against differences, which are computed at float64 here and at float32 in Paddle."""


def convert_float_to_uint16(values: Any, data_format: str = "NCHW") -> np.ndarray:
    """Numbers as bfloat16, in the uint16 that holds its bits."""
    found = np.asarray(values, np.float32)
    if data_format == "NHWC":
        found = np.transpose(found, [0, 3, 1, 2])
    return found.astype(ml_dtypes.bfloat16).view(np.uint16)


def convert_uint16_to_float(values: Any) -> np.ndarray:
    """The numbers of what holds bits of bfloat16."""
    return np.asarray(values, np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)


def _wide(values: Any) -> np.ndarray:
    """Numbers to compare: bfloat16, as itself or as its bits, and float16 in float32."""
    array = np.asarray(values)
    if array.dtype == np.uint16:
        return convert_uint16_to_float(array)
    return array.astype(np.float32) if array.dtype in (np.float16, ml_dtypes.bfloat16) else array


def _given(value: Any) -> Any:
    """A value of `inputs`: (array, lengths), a list of (name, value) pairs, or an array."""
    if isinstance(value, list):
        return [_given(v[1] if isinstance(v, tuple) and isinstance(v[0], str) else v) for v in value]
    if isinstance(value, tuple):
        return LoDTensor(_given(value[0]), lod_from_lengths(value[1]))
    array = np.asarray(value)
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.uint16 else array


def _plain(value: Any) -> Any:
    """An attribute without NumPy's types, and dtypes by name: Paddle takes all of them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return int(value) if hasattr(value, "__int__") and isinstance(value, str) else value


def _names(slot: str, value: Any) -> list[str]:
    """The names that a test has for the variables of a slot."""
    if not isinstance(value, list):
        return [slot]
    return [v[0] if isinstance(v, tuple) and isinstance(v[0], str) else f"{slot}{i}" for i, v in enumerate(value)]


class OpTest(unittest.TestCase):
    """A test of one op: op_type, inputs, attrs and outputs are set in setUp."""

    op_type = ""
    dtype: Any = None
    inputs: Any = {}
    outputs: Any = {}
    attrs: Any = {}

    @classmethod
    def setUpClass(cls) -> None:
        """Random numbers from the same start, as Paddle's OpTest has it."""
        np.random.seed(123)
        random.seed(124)

    @staticmethod
    def np_dtype_to_base_dtype(value: Any) -> Any:
        """The array as it is: NumPy's bfloat16 and Paddle's are one here."""
        return value

    np_dtype_to_fluid_dtype = np_dtype_to_base_dtype

    def _get_places(self) -> list[Any]:
        import paddle

        return [paddle.CPUPlace()]

    def _case(self, grads: Sequence[str] = (), loss: Sequence[str] = ()) -> OpCase:
        attrs = {n: v for n, v in dict(getattr(self, "attrs", None) or {}).items() if v is not None}
        attrs = {n: _plain(v) for n, v in attrs.items()}
        known = default_manager().op_info(self.op_type).proto.attrs
        attrs = {n: v for n, v in attrs.items() if n in known or not n.startswith("use_")}
        inputs = {slot: _given(v) for slot, v in self.inputs.items()}
        outputs = {slot: _given(v) for slot, v in self.outputs.items()}
        return OpCase(self.op_type, inputs, attrs, outputs, grads, type(self).__name__, loss=loss)

    def check_output(
        self, atol: float = 1e-5, rtol: float = 1e-5, no_check_set: Any = None, equal_nan: bool = False, **_: Any
    ) -> None:
        """Compare the outputs with those of the test."""
        case = self._case()
        built = build(case, case.inputs)
        names = {f"{slot}_{i}": name for slot, v in self.outputs.items() for i, name in enumerate(_names(slot, v))}
        slots = {f"{slot}_{i}": slot for slot, v in self.outputs.items() for i, _ in enumerate(_names(slot, v))}
        left_out = set(no_check_set or ())
        expected = dict(zip(built.fetch, built.expected, strict=True))
        compared = [v for v in built.fetch if not {names[v], slots[v]} & left_out]
        got = Executor().run(built.program, built.feed, compared, built.scope(), return_numpy=False)
        for variable, found in zip(compared, got, strict=True):
            self._compare(names[variable], expected[variable], found, atol, rtol, equal_nan)

    def _compare(self, name: str, want: Any, found: Any, atol: float, rtol: float, equal_nan: bool) -> None:
        expected, values = elements(want), elements(found)
        if expected.dtype == ml_dtypes.bfloat16 or values.dtype == ml_dtypes.bfloat16:
            atol, rtol = max(atol, 1e-2), max(rtol, 1e-2)
        a, b = _wide(values), _wide(expected)
        if a.size != b.size or (a.shape != b.shape and a.squeeze().shape != b.squeeze().shape):
            self.fail(f"{name} has the shape {a.shape}; expected {b.shape}")
        if not np.allclose(a.reshape(b.shape), b, atol=atol, rtol=rtol, equal_nan=equal_nan):
            apart = np.abs(a.reshape(b.shape).astype(np.complex128) - b.astype(np.complex128))
            self.fail(f"{name} differs by {np.nanmax(apart):.3g}")
        if isinstance(want, LoDTensor) and want.lod and list(map(list, want.lod)) != list(map(list, found.lod)):
            self.fail(f"{name} has the LoD {found.lod}; expected {want.lod}")

    def check_output_with_place(self, place: Any, *args: Any, **kwargs: Any) -> None:
        """As check_output: everything runs on the CPU."""
        self.check_output(*args, **kwargs)

    def check_grad(
        self, inputs_to_check: Sequence[str], output_names: Any, no_grad_set: Any = None,
        numeric_grad_delta: float = 0.005, in_place: bool = False, max_relative_error: float = 0.005,
        user_defined_grads: Any = None, user_defined_grad_outputs: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        """Compare gradients with those of the test, or with central differences of the op at float64."""
        wanted = [output_names] if isinstance(output_names, str) else list(output_names)
        grads = [slot for slot, v in self.inputs.items() if {slot, *_names(slot, v)} & set(inputs_to_check)]
        loss = [slot for slot, v in self.outputs.items() if {slot, *_names(slot, v)} & set(wanted)]
        case = self._case(grads, loss)
        if user_defined_grads is None:
            reasons = case.check_gradient(tolerance=max(max_relative_error, NUMERIC))
            self.assertFalse(reasons, "; ".join(reasons))
            return
        built = build(case, case.inputs)
        starts = user_defined_grad_outputs
        starts = list(starts) if isinstance(starts, list | tuple) else [starts] * len(built.outputs)
        outs = Executor().run(built.program, built.feed, built.outputs, built.scope(), return_numpy=False)
        cotangents = {}
        for name, out, start in zip(built.outputs, outs, starts, strict=False):
            values = elements(out)
            mean = np.full(values.shape, 1.0 / max(values.size, 1) / len(built.outputs), values.dtype)
            cotangents[name] = LoDTensor(mean if start is None else _given(start), getattr(out, "lod", ()))
        found = built.gradients(Executor(), cotangents, grads)
        names = {n: f"{slot}_{i}" for slot, v in self.inputs.items() for i, n in enumerate(_names(slot, v))}
        for name, want in zip(inputs_to_check, user_defined_grads, strict=False):
            a, b = _wide(want), _wide(found[names[name]])
            scale = np.where(np.abs(a) < 1e-3, 1.0, np.abs(a))
            worst = float(np.max(np.abs(a - b.reshape(a.shape)) / scale)) if a.size else 0.0
            self.assertLessEqual(worst, max_relative_error, f"gradient of {name} differs by {worst:.3g}")

    def check_grad_with_place(self, place: Any, *args: Any, **kwargs: Any) -> None:
        """As check_grad: everything runs on the CPU."""
        self.check_grad(*args, **kwargs)


def _as_it_is(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """A decorator of Paddle's that says why a check is left out."""
    return lambda decorated: decorated


@contextlib.contextmanager
def _static_guard() -> Iterator[None]:
    import paddle

    paddle.enable_static()
    try:
        yield
    finally:
        paddle.disable_static()


@contextlib.contextmanager
def _dygraph_guard() -> Iterator[None]:
    import paddle

    was = not paddle.in_dynamic_mode()
    paddle.disable_static()
    try:
        yield
    finally:
        if was:
            paddle.enable_static()


def install() -> None:
    """Put the modules into sys.modules, and let every device of a test be the CPU."""
    import paddle

    checks = {
        "OpTest": OpTest, "convert_float_to_uint16": convert_float_to_uint16, "skip_check_grad_ci": _as_it_is,
        "convert_uint16_to_float": convert_uint16_to_float, "_set_use_system_allocator": lambda value: value,
        "skip_check_inplace_ci": _as_it_is, "paddle_static_guard": _static_guard,
    }  # fmt: skip
    guards = {"static_guard": _static_guard, "dygraph_guard": _dygraph_guard}
    version = {"npu": type("npu", (), {"version": staticmethod(lambda: {"cann": "7.0"})})}
    contents: dict[str, dict[str, Any]] = {
        "tests": {}, "tests.op_test": checks, "op_test": checks, "eager_op_test": checks, "tests.eager_op_test": checks,
        "tests.utils": guards, "utils": guards, "paddle_custom_device": version,
    }  # fmt: skip
    for name, members in contents.items():
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(members, __path__=[])
        above, _, own = name.rpartition(".")
        if above:
            setattr(sys.modules[above], own, module)
    vars(np).setdefault("product", np.prod)  # the files are written for NumPy 1
    devices: Any = paddle
    for module in (devices, devices.base, devices.base.core):
        module.CustomPlace = lambda kind="cpu", number=0: paddle.CPUPlace()
    devices.set_device = devices.device.set_device = lambda device: paddle.CPUPlace()
    devices.is_compiled_with_custom_device = devices.device.is_compiled_with_custom_device = lambda kind: True
