"""What clients of onnxruntime use of it, on predictors of oprack; `oprack.inference.as_onnxruntime()` puts it there."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TypeProto, helper
from oprack.errors import ModelError, NotFoundError, OprackError, UnimplementedError
from oprack.inference import Config, create_predictor
from oprack.python.text import printable

from oprack_onnx.session_models import Specialized
from oprack_onnx.session_options import (
    ERRORS,
    ExecutionMode,
    GraphOptimizationLevel,
    InvalidArgument,
    InvalidProtobuf,
    NoSuchFile,
    NotImplemented_,
    RunOptions,
    RuntimeException,
    SessionOptions,
)

ONNXRUNTIME_VERSION = "1.31.1"
"""The version whose names and words these are."""

CPU = "CPUExecutionProvider"


# Values ---------------------------------------------------------------------------------------------------------------
class NodeArg:
    """An input or output of a model: `name`, `shape` with numbers, names and None, and `type`, as "tensor(float)"."""

    def __init__(self, name: str, type_: TypeProto) -> None:
        self.name, self.type = name, _type_text(type_)
        dims = type_.tensor_type.shape.dim if type_.WhichOneof("value") == "tensor_type" else ()
        self.shape: list[int | str | None] = [
            d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims
        ]

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


def _type_text(type_: TypeProto) -> str:
    which = type_.WhichOneof("value")
    if which == "tensor_type":
        name = onnx.TensorProto.DataType.Name(type_.tensor_type.elem_type).lower()
        return f"tensor({name})"
    if which == "sequence_type":
        return f"seq({_type_text(type_.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({_type_text(type_.optional_type.elem_type)})"
    return str(which)


class ModelMetadata:
    """What a model says of itself."""

    def __init__(self, model: ModelProto) -> None:
        self.producer_name, self.domain = model.producer_name, model.domain
        self.graph_name, self.graph_description = model.graph.name, model.graph.doc_string
        self.description, self.version = model.doc_string, model.model_version
        self.custom_metadata_map = {entry.key: entry.value for entry in model.metadata_props}


class OrtValue:
    """An array on the CPU."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """The value of an array.

        Args:
            array: The array.
            device_type: "cpu".
            device_id: 0.

        Returns:
            The value.
        """
        if device_type != "cpu":
            raise InvalidArgument(f"device_type is {device_type!r}; expected 'cpu'")
        return OrtValue(np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu") -> OrtValue:
        """A value of zeros.

        Args:
            shape: Its dims.
            element_type: Its NumPy dtype.
            device_type: "cpu".

        Returns:
            The value.
        """
        return OrtValue.ortvalue_from_numpy(np.zeros(shape, element_type), device_type)

    def numpy(self) -> np.ndarray:
        """The array."""
        return self._array

    __array__ = numpy

    def shape(self) -> tuple[int, ...]:
        """Its dims."""
        return self._array.shape

    def data_type(self) -> str:
        """Its type, as "tensor(float)"."""
        number = helper.np_dtype_to_tensor_dtype(self._array.dtype)
        return f"tensor({onnx.TensorProto.DataType.Name(number).lower()})"

    element_type = data_type

    def device_name(self) -> str:
        """ "cpu"."""
        return "cpu"

    def has_value(self) -> bool:
        """True."""
        return True

    def is_tensor(self) -> bool:
        """True."""
        return True


class IOBinding:
    """Inputs and outputs that are bound to a session."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, np.ndarray] = {}
        self._wanted: dict[str, OrtValue | None] = {}
        self._outputs: list[OrtValue] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Bind an array to an input.

        Args:
            name: Of the input.
            array: The array.
        """
        self._inputs[name] = np.asarray(array)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Bind a value to an input.

        Args:
            name: Of the input.
            value: The value.
        """
        self._inputs[name] = value.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, *_: Any) -> None:
        """Ask for an output.

        Args:
            name: Of the output.
            device_type: "cpu".
            device_id: 0.
        """
        self._wanted[name] = None

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Ask for an output that is written to a value.

        Args:
            name: Of the output.
            value: The value.
        """
        self._wanted[name] = value

    def run(self) -> None:
        """Run on what is bound."""
        names = list(self._wanted) or None
        found = self._session.run(names, self._inputs)
        self._outputs = []
        for array, target in zip(found, self._wanted.values() if self._wanted else [None] * len(found), strict=True):
            if target is not None:
                target.numpy()[...] = array
            self._outputs.append(target or OrtValue(array))

    def get_outputs(self) -> list[OrtValue]:
        """The values of the last run."""
        return list(self._outputs)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The arrays of the last run."""
        return [value.numpy() for value in self._outputs]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._wanted.clear()

    def synchronize_inputs(self) -> None:
        """Do nothing: all is on the CPU."""

    synchronize_outputs = synchronize_inputs


# Sessions -------------------------------------------------------------------------------------------------------------
class InferenceSession:
    """A model that is ready to run. Threads may share it; they run one after the other.

    Args:
        path_or_bytes: The `.onnx` file, or its bytes.
        sess_options: How it is run.
        providers: Of which "CPUExecutionProvider" is there.
        provider_options: Not read.

    Raises:
        NoSuchFile: There is no such file.
        InvalidProtobuf, InvalidGraph: It is no model.
        NotImplemented: It has ops that oprack has none for.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        data = path_or_bytes if isinstance(path_or_bytes, bytes) else _file_bytes(Path(path_or_bytes))
        config = self._configure()
        if isinstance(path_or_bytes, bytes):
            config.set_model_buffer(data, len(data), b"", 0)
        else:
            config.set_prog_file(str(Path(path_or_bytes)))
        self._lock = threading.Lock()
        self._predictor = _opened(config)
        model = ModelProto.FromString(data)
        self._special = Specialized(model, self._configure) if config.ir_optim() else None
        held = {t.name for t in model.graph.initializer}
        self._inputs = [NodeArg(i.name, i.type) for i in model.graph.input if i.name not in held]
        self._outputs = [NodeArg(o.name, o.type) for o in model.graph.output]
        self._input_names, self._output_names = ([a.name for a in args] for args in (self._inputs, self._outputs))
        self._meta = ModelMetadata(model)

    def _configure(self) -> Config:
        """What the options say, without a model."""
        config = Config()
        if self._options.intra_op_num_threads:
            config.set_cpu_math_library_num_threads(self._options.intra_op_num_threads)
        if self._options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL:
            config.switch_ir_optim(False)
        if self._options.use_deterministic_compute:
            config.switch_deterministic()
        return config

    # What there is ----------------------------------------------------------------------------------------------------
    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initializers can't be fed."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return self._meta

    def get_session_options(self) -> SessionOptions:
        """The options."""
        return self._options

    def get_providers(self) -> list[str]:
        """Where it runs: ["CPUExecutionProvider"]."""
        return [CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options of the providers: none."""
        return {CPU: {}}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Any = None) -> None:
        """Do nothing: there is one provider.

        Args:
            providers: Not read.
            provider_options: Not read.
        """

    def disable_fallback(self) -> None:
        """Do nothing: there is one provider."""

    enable_fallback = disable_fallback

    # Running ----------------------------------------------------------------------------------------------------------
    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """Run the model.

        Args:
            output_names: Which outputs; None for all.
            input_feed: Arrays by the names of the inputs.
            run_options: Not read.

        Returns:
            The outputs, in the order in which they were asked for.

        Raises:
            InvalidArgument: What is fed does not fit, or there is no such output.
            RuntimeException: An op failed.
        """
        known, names = self._output_names, self._input_names
        unknown = [n for n in output_names or () if n not in known]
        if unknown:
            raise InvalidArgument(f"Invalid output name: {printable(unknown[0])}; the model has {known}")
        if len(input_feed) > len(names) or not all([n in input_feed for n in names]):
            raise InvalidArgument(f"Required inputs ({names}) are not those of the feed ({list(input_feed)})")
        given = [input_feed[n] for n in names]
        arrays = [v.numpy() if isinstance(v, OrtValue) else np.asarray(v) for v in given]
        with self._lock:
            try:
                predictor, arrays = (
                    (self._predictor, arrays)
                    if self._special is None
                    else self._special.choose(self._predictor, names, arrays)
                )
                found = predictor.call(arrays)
            except OprackError as error:
                fed = type(error).__name__.startswith("Feed")
                raise (InvalidArgument if fed else RuntimeException)(str(error)) from error
        return [found[known.index(n)] for n in output_names] if output_names else found

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """As `run`, with values.

        Args:
            output_names: Which outputs; None for all.
            input_dict_ort_values: Values by the names of the inputs.
            run_options: Not read.

        Returns:
            The outputs.
        """
        return [OrtValue(a) for a in self.run(output_names, input_dict_ort_values)]

    def io_binding(self) -> IOBinding:
        """A binding to this session."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on what is bound.

        Args:
            iobinding: The binding.
            run_options: Not read.
        """
        iobinding.run()

    def end_profiling(self) -> str:
        """The file of a profile: none is written."""
        return ""


def _file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NoSuchFile(f"Load model from {printable(str(path))} failed: {error.strerror}") from None


def _opened(config: Config) -> Any:
    try:
        return create_predictor(config)
    except NotFoundError as error:
        raise NoSuchFile(str(error)) from error
    except UnimplementedError as error:
        raise NotImplemented_(str(error)) from error
    except ModelError as error:
        raise InvalidProtobuf(str(error)) from error


def get_available_providers() -> list[str]:
    """What there is to run on: ["CPUExecutionProvider"]."""
    return [CPU]


get_all_providers = get_available_providers


def get_device() -> str:
    """ "CPU"."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Do nothing: what is worth knowing goes to `logging`.

    Args:
        severity: From which on.
    """


def set_default_logger_verbosity(verbosity: int) -> None:
    """Do nothing.

    Args:
        verbosity: How much.
    """


def set_seed(seed: int) -> None:
    """Set the seed of random ops."""
    import oprack

    oprack.seed(seed)


def disable_telemetry_events() -> None:
    """Do nothing: there are none."""


enable_telemetry_events = disable_telemetry_events


__all__ = [
    "ERRORS",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
