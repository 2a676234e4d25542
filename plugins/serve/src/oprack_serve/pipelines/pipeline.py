"""One version of a pipeline in the server: a model whose workers run functions, and whose requests pass models."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from oprack.errors import InvalidArgumentError

from oprack_serve.errors import RequestError
from oprack_serve.http import Bodies
from oprack_serve.joining import Feed
from oprack_serve.model import LoadError, Model
from oprack_serve.pipelines import definition
from oprack_serve.pipelines.lane import Find, PipelineLane, check_counts
from oprack_serve.repository import FoundModel
from oprack_serve.scheduler import Scheduler
from oprack_serve.settings import Settings

HOST = (sys.executable, "-m", "oprack_serve.pipelines.host")


class Pipeline(Model):
    """A version of a pipeline.

    Args:
        found, settings, scheduler, event: As of a model.
        find: The model of a name and version that serves; raises RequestError.
        bodies: What counts the bytes of all requests.

    Raises:
        LoadError: The file is wrong, or the server was not told to run code out of folders.
    """

    lane: PipelineLane

    def __init__(
        self,
        found: FoundModel,
        settings: Settings,
        scheduler: Scheduler,
        event: Callable[..., None],
        find: Find,
        bodies: Bodies,
    ) -> None:
        super().__init__(found, settings, scheduler, event)
        if not settings.allow_pipelines:
            raise LoadError(
                f"{definition.FILE} names Python code, which would run with the rights of the server; start it with "
                "--allow-pipelines where nobody but you can write to the folder of models"
            )
        try:
            self.definition = definition.load(found.path)
        except (InvalidArgumentError, OSError) as error:
            raise LoadError(str(error)) from None
        self._find = find
        self.lane = PipelineLane(scheduler, settings.max_queue, found.name, find, bodies)
        self.lane.pipeline = self.definition

    @property
    def needs(self) -> list[str]:
        """Names of the models among its stages."""
        return self.definition.models

    @property
    def ready(self) -> bool:
        """Whether its functions and all its models serve."""
        return super().ready and all(model is not None and model.ready for model in map(self._model, self._stages()))

    def _stages(self) -> list[definition.Stage]:
        return [stage for stage in self.definition.stages if stage.is_model]

    def _model(self, stage: definition.Stage) -> Any:
        try:
            return self._find(stage.name, stage.version)
        except RequestError:
            return None

    def _host(self) -> tuple[str, ...]:
        return HOST

    async def _load(self, recorded: Counter[str]) -> None:
        for stage in self._stages():
            try:
                check_counts(stage, self._find(stage.name, stage.version))
            except RequestError as error:
                raise LoadError(f"{self.definition.file}: {stage}: {error}") from None
        await super()._load(recorded)

    def record(self, feed: Feed) -> None:
        """Functions are not warmed up."""

    def metadata(self, versions: list[str]) -> dict[str, Any]:
        """The metadata of the protocol, with the stages."""
        found = super().metadata(versions)
        found["parameters"]["stages"] = "; ".join(map(str, self.definition.stages))
        return found
