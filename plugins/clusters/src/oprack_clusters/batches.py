"""A model as a function of tables, for engines that call it in many processes: Ray Data, Dask, Spark.

Such engines send the function to their workers. What they send is which model it is; a worker loads it once, whichever
function of however many tasks asks for it, and threads of a worker share its parameters.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.cache import Cache
from oprack.errors import InvalidArgumentError
from oprack.inference import Config, Predictor, create_predictor
from oprack.tensor import LoDTensor

if TYPE_CHECKING:
    import pandas as pd

MODELS = 8
"""So many models a process keeps loaded."""
_SPARK = {"bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}
_SPARK |= {"uint8": "smallint", "float16": "float", "float32": "float", "float64": "double"}

_loaded = Cache(MODELS)
_loading = threading.Lock()
_own = threading.local()
"""Of each thread: clones of predictors."""


class BatchPredictor:
    """Runs a model on rows of a table.

    An instance is small and can be sent anywhere; the model's files have to be where it is called.

    - Ray Data: `dataset.map_batches(BatchPredictor, fn_constructor_args=["model"], concurrency=4, batch_size=64)`
    - Dask: `frame.map_partitions(predict.frame, meta=predict.frame(frame._meta))`
    - Spark: `frame.mapInPandas(predict.frames, schema="id bigint, " + predict.spark_columns())`

    Args:
        model: A folder, a `.pdmodel`, an `inference.json`, or what else `oprack.inference.Config` takes.
        params_file: The file of parameters, where it is not beside the model.
        inputs: Input of the model -> column; default: columns have the names of the inputs.
        outputs: Output of the model -> column; those that are not named are left out. Default: all, by their own names.
        sequences: Inputs in which a row is a sequence of any length, `[length, ...]`. Rows are joined with their LoD,
            without padding; an output with LoD is cut into rows again.
        batch_size: Most rows of one run; default: 64 of frames, and all of a batch that Ray Data brings.
        threads: Threads of one run.
        cache: A folder for the model as passes rewrite it; processes of a machine that load it from there share the
            memory of all parameters that no kernel packs. Default: none.
        config: Methods of `Config` to call, with their arguments: `{"enable_mkldnn_bfloat16": []}`.

    Raises:
        InvalidArgumentError: An argument is of no such model or Config; the model is not loaded before the first batch.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        params_file: str | os.PathLike[str] | None = None,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        sequences: Sequence[str] = (),
        batch_size: int | None = None,
        threads: int = 1,
        cache: str | os.PathLike[str] = "",
        config: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self._model, self._params = os.fspath(model), os.fspath(params_file) if params_file else None
        self._inputs, self._outputs = dict(inputs or {}), dict(outputs or {})
        self._sequences, self._rows = frozenset(sequences), batch_size
        self._threads, self._cache = threads, os.fspath(cache)
        self._config = {name: list(given) for name, given in (config or {}).items()}
        if (batch_size is not None and batch_size < 1) or threads < 1:
            raise InvalidArgumentError(
                f"BatchPredictor: batch_size {batch_size}, threads {threads}; expected positive numbers"
            )
        for name in self._config:
            if name.startswith("_") or not callable(getattr(Config, name, None)):
                raise InvalidArgumentError(f"BatchPredictor: config has {name!r}; expected methods of Config")

    # What engines call ------------------------------------------------------------------------------------------------
    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Add the model's outputs to a batch, as Ray Data's `map_batches` calls it.

        Args:
            batch: Column -> array whose dim 0 counts rows.

        Returns:
            All columns that are no inputs, and one for each output.

        Raises:
            InvalidArgumentError: A column is missing, or its rows don't go together.
        """
        predictor = self._predictor()
        columns = self._columns(predictor)
        self._require(columns, batch)
        count = len(next(iter(batch.values()))) if batch else 0
        made = self._run(predictor, {name: batch[column] for name, column in columns.items()}, count)
        return {name: x for name, x in batch.items() if name not in columns.values()} | made

    def frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add the model's outputs to a pandas DataFrame, such as a partition of Dask's; rows keep their index.

        Args:
            frame: Rows; without any, the result has the right columns and dtypes.

        Returns:
            A new frame: all columns that are no inputs, and one for each output. A row of an output with several
            elements is an array in a column of objects.
        """
        predictor = self._predictor()
        columns = self._columns(predictor)
        self._require(columns, frame)
        given = {name: frame[column].to_numpy() for name, column in columns.items()}
        made = self._run(predictor, given, len(frame), self._rows or 64)
        # Not a copy of the columns of inputs, which may be large
        found = frame[[name for name in frame.columns if name not in columns.values()]].copy()
        for name, x in made.items():
            found[name] = x if x.ndim == 1 else _objects(x)
        return found

    def frames(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """As `frame`, of each of many, as Spark's `mapInPandas` calls it.

        Args:
            frames: Parts of a partition.

        Yields:
            What becomes of each; arrays are lists there, which Arrow takes at any depth.
        """
        for frame in frames:
            found = self.frame(frame)
            for name in found.columns:
                if found[name].dtype == object:
                    found[name] = [v.tolist() if isinstance(v, np.ndarray) else v for v in found[name]]
            yield found

    def spark_columns(self) -> str:
        """The columns of the outputs as Spark declares them: "scores array<float>".

        Returns:
            Text for the end of a schema.

        Raises:
            InvalidArgumentError: An output has a dtype that Spark has not.
        """
        found = []
        for name, dtype, dims in self._declared(self._predictor()):
            if dtype not in _SPARK:
                raise InvalidArgumentError(
                    f"BatchPredictor: output {name!r} is {dtype}, which Spark has not; expected one of "
                    f"{', '.join(_SPARK)}"
                )
            found.append(f"`{name}` {'array<' * dims}{_SPARK[dtype]}{'>' * dims}")
        return ", ".join(found)

    # The model --------------------------------------------------------------------------------------------------------
    def _predictor(self) -> Predictor:
        """This thread's predictor; all of a process share one load of the model."""
        key = (*self._key(), _stamp(self._model), _stamp(self._params))
        own: Cache | None = getattr(_own, "predictors", None)
        if own is None:
            own = _own.predictors = Cache(MODELS)
        found: Predictor | None = own[key]
        if found is None:
            with _loading:  # the model is large: who comes meanwhile waits for it
                shared: Predictor | None = _loaded[key]
                if shared is None:
                    shared = _loaded[key] = self._load()
                found = own[key] = shared.clone()
        return found

    def _key(self) -> tuple[Any, ...]:
        return self._model, self._params, self._threads, self._cache, repr(sorted(self._config.items()))

    def _load(self) -> Predictor:
        config = Config(self._model, self._params) if self._params else Config(self._model)
        config.set_cpu_math_library_num_threads(self._threads)
        if self._cache:
            config.set_optim_cache_dir(self._cache)
        for name, given in self._config.items():
            getattr(config, name)(*given)
        return create_predictor(config)

    def _columns(self, predictor: Predictor) -> dict[str, str]:
        names = predictor.get_input_names()
        for unknown in (self._inputs.keys() | self._sequences) - set(names):
            raise InvalidArgumentError(
                f"BatchPredictor: {self._model} has no input {unknown!r}; it has {_listed(names)}"
            )
        return {name: self._inputs.get(name, name) for name in names}

    def _require(self, columns: Mapping[str, str], table: Any) -> None:
        for name, column in columns.items():
            if column not in table:
                raise InvalidArgumentError(
                    f"BatchPredictor: there is no column {column!r} for the input {name!r} of {self._model}; the table "
                    f"has {_listed(list(table))}. inputs={{{name!r}: column}} names another"
                )

    def _wanted(self, predictor: Predictor) -> dict[str, str]:
        """Output -> column."""
        names = predictor.get_output_names()
        for unknown in self._outputs.keys() - set(names):
            raise InvalidArgumentError(
                f"BatchPredictor: {self._model} has no output {unknown!r}; it has {_listed(names)}"
            )
        return self._outputs or {name: name for name in names}

    def _declared(self, predictor: Predictor) -> list[tuple[str, str, int]]:
        """(column, dtype, dims of a row) of the outputs, as the model declares them."""
        found = []
        for name, column in self._wanted(predictor).items():
            var = predictor.declared(name)
            dims = max(0, len(var.shape or ()) - 1) + bool(var.lod_level) if var is not None else 0
            dtype = var.dtype_name() if var is not None else None
            found.append((column, dtype or "float32", dims))
        return found

    # Rows -------------------------------------------------------------------------------------------------------------
    def _run(
        self, predictor: Predictor, given: Mapping[str, Any], count: int, most: int | None = None
    ) -> dict[str, Any]:
        """Column -> array of all rows."""
        if not count:
            declared = self._declared(predictor)
            return {name: np.empty((0,) * (1 if dims == 0 else 2), dtype) for name, dtype, dims in declared}
        most = self._rows or most or count
        parts: dict[str, list[np.ndarray]] = {}
        for start in range(0, count, most):
            fed = [self._fed(predictor, name, x[start : start + most]) for name, x in given.items()]
            predictor.run(fed)
            for name, column in self._wanted(predictor).items():
                handle = predictor.get_output_handle(name)
                rows = _rows(handle.copy_to_cpu(), handle.lod())
                given_rows = min(most, count - start)
                if len(rows) != given_rows:
                    raise InvalidArgumentError(
                        f"BatchPredictor: output {name!r} of {self._model} has {len(rows)} rows for {given_rows} of "
                        "the table; expected one for each. outputs={...} leaves outputs out that are not by rows"
                    )
                parts.setdefault(column, []).append(rows)
        return {name: _joined(rows) for name, rows in parts.items()}

    def _fed(self, predictor: Predictor, name: str, rows: Any) -> np.ndarray | LoDTensor:
        """What an input is fed for some rows."""
        var = predictor.declared(name)
        dtype = var.dtype_name() if var is not None and var.dtype is not None else None
        if name not in self._sequences:
            x = self._stacked(name, rows)
            return x if dtype is None else x.astype(dtype, copy=False)
        arrays = [_whole(row) for row in rows]
        shapes = {x.shape[1:] for x in arrays}
        if len(shapes) > 1 or any(x.ndim == 0 for x in arrays):
            raise self._ragged(name, arrays, "sequences of one width")
        whole = np.concatenate(arrays)
        whole = whole if dtype is None else whole.astype(dtype, copy=False)
        if whole.ndim == 1:
            whole = whole[:, None]  # steps of one element, as Fluid has words
        ends = np.cumsum([0, *(len(x) for x in arrays)])
        return LoDTensor(whole, [ends.tolist()])

    def _stacked(self, name: str, rows: Any) -> np.ndarray:
        if isinstance(rows, np.ndarray) and rows.dtype != object:
            return rows
        arrays = [_whole(row) for row in rows]
        if len({x.shape for x in arrays}) > 1:
            raise self._ragged(name, arrays, f"rows of one shape; sequences=[{name!r}] joins rows of any length")
        return np.stack(arrays)

    def _ragged(self, name: str, arrays: Sequence[np.ndarray], expected: str) -> InvalidArgumentError:
        shapes = sorted({str(x.shape) for x in arrays})[:5]
        return InvalidArgumentError(
            f"BatchPredictor: rows of the input {name!r} of {self._model} have shapes {', '.join(shapes)}; expected "
            f"{expected}"
        )

    def __repr__(self) -> str:
        return f"BatchPredictor({self._model!r})"


def _stamp(path: str | None) -> Any:
    """What changes when the files of a model do, so that a worker that lives long loads them again."""
    if path is None:
        return None
    files = sorted(Path(path).iterdir()) if os.path.isdir(path) else [Path(path)]
    return [(f.name, s.st_mtime_ns, s.st_size) for f in files if f.is_file() and (s := f.stat())].__repr__()


def _whole(row: Any) -> np.ndarray:
    """A row as an array; Arrow hands nested lists on as arrays of arrays."""
    x = np.asarray(row)
    return x if x.dtype != object or not x.size else np.stack([_whole(v) for v in x])


def _rows(x: np.ndarray, lod: list[list[int]]) -> Any:
    """An output row by row: the array itself, or with LoD an array of objects, one for each sequence."""
    if not lod:
        return x
    ends = lod[0]
    for level in lod[1:]:
        ends = [level[e] for e in ends]
    return _objects([x[a:b] for a, b in itertools.pairwise(ends)])


def _objects(rows: Sequence[Any] | np.ndarray) -> np.ndarray:
    found = np.empty(len(rows), object)
    for k, row in enumerate(rows):
        found[k] = row
    return found


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(repr, names)) or "none"
