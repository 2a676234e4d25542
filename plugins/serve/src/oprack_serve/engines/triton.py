"""Triton: models of oprack in its Python backend, with Triton's protocols, queues, metrics and instances.

    python -m oprack_serve.engines.triton lac_model --name lac --repository /srv/triton
    tritonserver --model-repository /srv/triton

The first writes `lac/config.pbtxt` and `lac/1/` with the model and a `model.py` of one line. Triton's dynamic batcher
hands over requests as they came, and oprack joins those of them that may be joined, sequences by LoD without padding.

Triton wants one size of batch for all inputs of a request. Where a model has sequences, a request is one entry of a
batch to it: every tensor has a dim of 1 before its own, and `<name>.lod.<level>` are tensors as with `oprack serve`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError

from oprack_serve.engines.local import LocalModel
from oprack_serve.errors import RequestError
from oprack_serve.protocol import Limits, joined_with_lod
from oprack_serve.repository import NAME
from oprack_serve.signature import LOD_SUFFIX, Signature, Tensor, TensorSpec

FOLDER = "model"
MODULE = "from oprack_serve.engines.triton import TritonPythonModel\n"
DATATYPES = ("BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64")
"""Those that NumPy has a dtype for in the backend; config.pbtxt writes TYPE_ before them."""


# The repository -------------------------------------------------------------------------------------------------------
def write(
    model: Path,
    repository: Path,
    name: str,
    max_batch: int = 32,
    instances: int = 1,
    threads: int = 1,
    site: str = "",
) -> Path:
    """Write an entry of a model repository of Triton.

    Args:
        model: As `oprack serve` takes it.
        repository: The folder of the repository.
        name: Of the model.
        max_batch: Requests (or rows, of a model without sequences) that Triton gathers for one run.
        instances: Processes of the model.
        threads: Of kernel libraries in each.
        site: A folder site-packages with oprack, for a Python of Triton's that has none.

    Returns:
        The entry's folder.

    Raises:
        InvalidArgumentError: The name is none, or the model has a dtype that the Python backend can't take.
    """
    if not NAME.fullmatch(name):
        raise InvalidArgumentError(f"{name!r} can't be the name of a model; expected letters, digits, '_', '-' and '.'")
    loaded = LocalModel(model, threads)
    try:
        config = configuration(name, loaded, max_batch, instances, threads)
    finally:
        loaded.close()
    version = repository / name / "1"
    source = model if model.is_dir() else model.parent
    shutil.copytree(source, version / FOLDER, dirs_exist_ok=True)
    found = f"import site\n\nsite.addsitedir({site!r})\n" if site else ""
    (version / "model.py").write_text(found + MODULE, "utf-8")
    (repository / name / "config.pbtxt").write_text(config)
    return repository / name


def configuration(name: str, model: LocalModel, max_batch: int, instances: int, threads: int) -> str:
    """config.pbtxt: protobuf's text format, whose strings are those of JSON."""
    ragged = _one_entry(model.signature)
    batches = model.rule.joins and max_batch > 1
    lines = [f"name: {json.dumps(name)}", 'backend: "python"', f"max_batch_size: {max_batch if batches else 0}"]
    for kind, specs in (("input", model.signature.inputs), ("output", model.signature.outputs)):
        for spec in specs:
            shape = [int(d) for d in spec.shape or (-1,)]
            own = [-1, *shape[1:]] if ragged else shape[1:] if batches else shape
            lines.append(_tensor(kind, spec.name, _type(spec), own, batches and kind == "input"))
            for level in range(spec.lod_level):
                lines.append(
                    _tensor(kind, f"{spec.name}{LOD_SUFFIX}{level}", "INT64", [-1], batches and kind == "input")
                )
    if batches:
        lines.append("dynamic_batching { }")
    lines.append(f"instance_group [ {{ kind: KIND_CPU count: {instances} }} ]")
    for key, value in (("threads", threads), ("ragged", int(ragged and batches))):
        lines.append(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}')
    return "\n".join(lines) + "\n"


def _tensor(kind: str, name: str, datatype: str, dims: list[int], ragged: bool) -> str:
    shape = ", ".join(map(str, dims)) or "1"
    free = " allow_ragged_batch: true" if ragged and -1 in dims else ""
    again = "" if dims else " reshape { shape: [ ] }"
    return f"{kind} [ {{ name: {json.dumps(name)} data_type: TYPE_{datatype} dims: [ {shape} ]{again}{free} }} ]"


def _type(spec: TensorSpec) -> str:
    if spec.datatype not in DATATYPES:
        raise InvalidArgumentError(
            f"{spec.name!r} is {spec.datatype or 'of no declared dtype'}; Triton's Python backend takes "
            + ", ".join(DATATYPES)
        )
    return spec.datatype


def _one_entry(signature: Signature) -> bool:
    return any(spec.lod_level for spec in (*signature.inputs, *signature.outputs))


# In the backend -------------------------------------------------------------------------------------------------------
class TritonPythonModel:
    """What Triton's Python backend calls; it provides `triton_python_backend_utils`."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the model of this version."""
        import triton_python_backend_utils as utils  # type: ignore[import-not-found]

        self._utils = utils
        config = json.loads(args["model_config"])
        parameters = {key: row["string_value"] for key, row in config.get("parameters", {}).items()}
        folder = Path(args["model_repository"]) / args["model_version"] / FOLDER
        self._model = LocalModel(folder, int(parameters.get("threads", "1")))
        self._strip = parameters.get("ragged") == "1"
        self._specs = {spec.name: spec for spec in self._model.signature.inputs}
        self._limits = Limits()

    def execute(self, requests: list[Any]) -> list[Any]:
        """A response for each request."""
        feeds = [self._feed(request) for request in requests]
        good = [feed for feed in feeds if not isinstance(feed, RequestError)]
        found = iter(self._model.results(good))
        results = [feed if isinstance(feed, RequestError) else next(found) for feed in feeds]
        return [self._response(*pair) for pair in zip(requests, results, strict=True)]

    def finalize(self) -> None:
        """The model is unloaded."""
        self._model.close()

    def _feed(self, request: Any) -> dict[str, Tensor] | RequestError:
        try:
            given = {tensor.name(): (self._stripped(_array(tensor)), None) for tensor in request.inputs()}
            for name, spec in self._specs.items():
                array = given[name][0] if name in given else None
                if array is not None and not (spec.fits(array.shape) and spec.dtype in ("", array.dtype.name)):
                    shape, wanted = list(array.shape), list(spec.shape or ())
                    raise RequestError(
                        400, f"input {name!r}: {array.dtype} {shape}; the model expects {spec.dtype} of shape {wanted}"
                    )
            return joined_with_lod(self._specs, given, {}, self._limits)
        except RequestError as error:
            return error

    def _stripped(self, array: np.ndarray) -> np.ndarray:
        if not self._strip:
            return array
        if array.ndim == 0 or len(array) != 1:
            raise RequestError(400, f"a tensor has shape {list(array.shape)}; expected a dim of 1 before its own")
        first: np.ndarray = array[0]
        return first

    def _response(self, request: Any, result: dict[str, Tensor] | Exception) -> Any:
        utils = self._utils
        if isinstance(result, Exception):
            return utils.InferenceResponse(output_tensors=[], error=utils.TritonError(str(result)))
        arrays = {}
        for name, tensor in result.items():
            arrays[name] = tensor.array
            arrays |= {f"{name}{LOD_SUFFIX}{k}": np.array(level, np.int64) for k, level in enumerate(tensor.lod)}
        wanted = [name for name in arrays if name in request.requested_output_names()]
        return utils.InferenceResponse(
            output_tensors=[utils.Tensor(name, self._dressed(arrays[name])) for name in wanted]
        )

    def _dressed(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array[None] if self._strip else array)


def _array(tensor: Any) -> np.ndarray:
    """The array of an input. Raises RequestError where the backend was built for another NumPy and gets it wrong."""
    array: np.ndarray = tensor.as_numpy()
    if not array.flags.c_contiguous:
        raise RequestError(
            500,
            f"this build of Triton's Python backend can't read arrays of NumPy {np.__version__}: put NumPy 1.26 before "
            "it on the path, or take a newer Triton",
        )
    return array


def main() -> int:
    """Command line: write an entry of a model repository."""
    parser = argparse.ArgumentParser(prog="python -m oprack_serve.engines.triton", description="A model for Triton.")
    parser.add_argument("model", type=Path, help="as oprack serve takes it")
    parser.add_argument("--name", required=True)
    parser.add_argument("--repository", type=Path, required=True, help="the folder of models that Triton is given")
    parser.add_argument("--max-batch", type=int, default=32, help="requests in one run (default: %(default)s)")
    parser.add_argument("--instances", type=int, default=1, help="processes of the model (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of each process (default: %(default)s)")
    parser.add_argument(
        "--site", default="", metavar="DIR", help="site-packages with oprack, if Triton's Python has none"
    )
    args = vars(parser.parse_args())
    try:
        print(write(**args))
    except (InvalidArgumentError, OSError) as error:
        print(f"oprack_serve.engines.triton: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
