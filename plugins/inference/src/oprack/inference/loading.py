"""Where the files of a Config's model lie, and the model that they hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oprack.errors import PreconditionNotMetError
from oprack.io.inference_model import InferenceModel, load_from_buffers, load_inference_model
from oprack.tensor import Scope

if TYPE_CHECKING:
    from oprack.inference.config import Config


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
