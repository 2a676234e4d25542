"""From a model's files to one that is ready to run: rewritten by passes, its parameters read-only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oprack.errors import PreconditionNotMetError
from oprack.io.inference_model import InferenceModel, load_from_buffers, load_inference_model
from oprack.program import Program
from oprack.tensor import LoDTensor, Scope

if TYPE_CHECKING:
    from oprack.inference.config import Config
    from oprack.ir import Optimized
    from oprack.ir.passes import Pass
    from oprack.runtime import NaiveExecutor


def load_model(config: Config, scope: Scope) -> InferenceModel:
    """The model that a Config names, as it was saved; its parameters are set in `scope`.

    Raises PreconditionNotMetError when it names none, else as load_inference_model.
    """
    buffers = config.buffers()
    if buffers is not None:
        return load_from_buffers(*buffers, scope)
    path, model, params = model_location(config)
    return load_inference_model(path, scope, model_filename=model, params_filename=params)


def model_location(config: Config) -> tuple[Path, str | None, str | None]:
    """path, model_filename and params_filename of load_inference_model, for a model in files.

    Raises PreconditionNotMetError when the Config names none.
    """
    if config.prog_file():
        program = Path(config.model_dir(), config.prog_file()).absolute()
        params = str(Path(config.model_dir(), config.params_file()).absolute()) if config.params_file() else None
        return program.parent, program.name, params
    if not config.model_dir():
        raise PreconditionNotMetError(
            "create_predictor: the Config names no model; use Config(model_dir), Config(model_file, params_file) or "
            "config.set_model_buffer(...)"
        )
    return Path(config.model_dir()), None, None


def optimize_model(
    model: InferenceModel,
    scope: Scope,
    executor: NaiveExecutor,
    passes: Sequence[Pass] | None = None,
    debug: bool | None = None,
) -> tuple[InferenceModel, Optimized]:
    """Run passes over a model, and free the parameters that it needs no more.

    Args:
        model: As loaded; it stays as it is.
        scope: Holds the parameters; folded ones are added.
        executor: Runs the model later; its place and packs decide which passes there are.
        passes: In order; None = all that serve inference at the place.
        debug: Verify the graph after every pass; None = as the environment variable OPRACK_IR_DEBUG says.

    Returns:
        The rewritten model, and what each pass did.

    Raises:
        MissingPackError: When no pack brings an op.
        BlockCycleError, BlockDepthError: When blocks can't be run.
        GraphError: When verification fails.
    """
    from oprack.ir import optimize

    executor.check(model.program.desc)
    done = optimize(
        model.program.desc,
        scope,
        keep=model.fetch_names,
        passes=passes,
        place=executor.place,
        manager=executor.manager,
        debug=debug,
    )
    scope.erase(done.unused)
    return InferenceModel(Program(done.program), model.feed_names, model.fetch_names), done


def freeze_parameters(scope: Scope) -> None:
    """Make parameters read-only: kernel libraries may then keep what they derive from them, such as packed weights."""
    for name in scope.local_var_names():
        value = scope.var(name).value
        if isinstance(value, LoDTensor) and isinstance(value.array, np.ndarray):
            if not value.array.flags.owndata:  # a view of memory that somebody else may write to
                value.array = value.array.copy(order="K")
            value.shared = True  # an op in place makes memory of its own first
            value.array.flags.writeable = False
