"""All models of a server: loaded at its start, found by name and version, and replaced when they change on disk."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from oprack_serve import repository
from oprack_serve.errors import RequestError
from oprack_serve.host import keep_what_is_there
from oprack_serve.http import Bodies
from oprack_serve.model import LOADING, READY, UNAVAILABLE, LoadError, Model
from oprack_serve.pipelines import definition as pipelines
from oprack_serve.pipelines.pipeline import Pipeline
from oprack_serve.repository import FoundModel, Key
from oprack_serve.scheduler import Scheduler
from oprack_serve.settings import Settings

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 600.0
MAX_REASON = 300
LAST_SECONDS = 3.0
"""For other fronts to end; they have had the same grace by then."""


@dataclass(frozen=True)
class Failure:
    """A model that could not be loaded; `again` is when it is tried again though its files are the same."""

    found: FoundModel | None
    reason: str
    pause: float
    again: float


class Models:
    """The models of one server."""

    def __init__(self, settings: Settings, event: Callable[..., None]) -> None:
        self._settings, self._event = settings, event
        self.scheduler = Scheduler(settings.workers, 0 if settings.fronts > 1 else None)
        self.bodies = Bodies(settings.max_body, settings.max_inflight)
        self.fronts: Any = None  # those of oprack_serve.fronts.manager, which know the models
        self.relay: Callable[[dict[str, Any]], Awaitable[bytes]] | None = None
        """In a front that is not the server: asks that one for what all have counted."""
        self.metrics: Any = None  # those of oprack_serve.metrics, which know the models
        self._serve({})
        self._failed: dict[Key, Failure] = {}
        self._loading: set[Key] = set()
        self._waiting: set[Key] = set()
        self._seen: dict[Key, FoundModel] = {}
        self._lost: set[Key] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._at_once = asyncio.Semaphore(2)
        self.started = self.draining = self.stopping = self._expected = False
        self.reloads: Counter[str] = Counter()
        self.on_model: Callable[[Model], None] = lambda model: None
        self.on_stop: Callable[[], None] = lambda: None
        """Called when the server stops listening."""

    def scan(self) -> list[FoundModel]:
        """The models on disk; those that can't be read are as they were."""
        if self._settings.models is not None:
            return repository.scan(self._settings.models, self._unreadable)
        assert self._settings.model is not None
        try:
            return repository.single(self._settings.model, self._settings.name)
        except OSError as error:
            return self._unreadable("", error)

    def _unreadable(self, name: str, error: OSError) -> list[FoundModel]:
        self._expected = True
        self._event("models can't be read", model=name, reason=str(error))
        return [model for model in self._seen.values() if name in ("", model.name)]

    # Finding ----------------------------------------------------------------------------------------------------------
    def find(self, name: str, version: str | None) -> Model:
        """The model of that name, of the newest version if none is given. Raises RequestError: 404, or 503 while it
        loads or since it can't be loaded.
        """
        chosen = self._newest.get(name) if version is None else self.serving.get((name, version))
        if chosen is not None:
            return chosen
        what = f"model {name[:128]!r}" + (f" version {version[:20]!r}" if version is not None else "")
        for (n, v), failure in self._failed.items():
            if n == name and version in (None, v):
                raise RequestError(503, f"{what} could not be loaded: {failure.reason}")
        if any(n == name and version in (None, v) for n, v in self._loading):
            raise RequestError(503, f"{what} is being loaded; try again later")
        # clients of Triton know a mistake in the name by the first words
        raise RequestError(
            404, f"Request for unknown model: there is no {what}; POST /v2/repository/index lists what there is"
        )

    def _serve(self, serving: dict[Key, Model]) -> None:
        """Serve these models from now on."""
        self.serving = serving
        self._newest = {key[0]: serving[key] for key in sorted(serving, key=lambda key: int(key[1]))}

    def versions(self, name: str) -> list[str]:
        """Versions that are served, the oldest first."""
        return sorted((v for n, v in self.serving if n == name), key=int)

    @property
    def ready(self) -> bool:
        """Whether every model was loaded and warmed up, or reported, and a worker answers, if there is any model."""
        if not self.started or self.draining or self.stopping:
            return False
        if self.fronts is not None and not self.fronts.ready:
            return False
        return any(model.ready for model in self.serving.values()) or not self._expected

    def serves(self, model: Model) -> bool:
        """Whether the model is ready, and the server is not about to stop."""
        return model.ready and not (self.draining or self.stopping)

    def metadata(self, model: Model) -> dict[str, Any]:
        """The model metadata of the protocol."""
        return model.metadata(self.versions(model.name))

    def index(self, only_ready: bool = False) -> list[dict[str, str]]:
        """Every model with its state, as the protocol's extension for repositories lists them."""
        rows = {key: (model.state, "") for key, model in self.serving.items()}
        rows |= {key: (LOADING, "") for key in self._loading if key not in rows}
        for key, failure in self._failed.items():
            state = rows[key][0] if key in rows else UNAVAILABLE
            rows[key] = (state, failure.reason)
        ordered = sorted(rows.items(), key=lambda row: (row[0][0], int(row[0][1])))
        found = [{"name": n, "version": v, "state": state, "reason": why} for (n, v), (state, why) in ordered]
        return [row for row in found if row["state"] == READY] if only_ready else found

    def state(self) -> dict[str, Any]:
        """What other fronts need to know, beside the models that are served."""
        return {
            "serving": [[*key, model.number] for key, model in self.serving.items()],
            "failed": [[*key, failure.reason[:MAX_REASON]] for key, failure in self._failed.items()],
            "loading": [list(key) for key in self._loading],
            "started": self.started,
            "draining": self.draining,
            "expected": self._expected,
        }

    async def informed(self) -> None:
        """Wait until it is known which models there are to be; at once, unless another process has to tell."""

    # Loading ----------------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Load every model; those that fail are reported and left out."""
        found = await asyncio.to_thread(self.scan)
        self._seen = {model.key: model for model in found}
        self._expected |= bool(found)
        self._loading |= self._seen.keys()
        await asyncio.gather(*(self._load(model) for model in found))
        keep_what_is_there()
        self.started = True
        self._spawn(self._watch())

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _load_soon(self, found: FoundModel) -> None:
        """Load a model, unless it is being loaded."""
        if found.key not in self._loading and not self.stopping:
            self._loading.add(found.key)  # now: a load that ends before the task begins would leave none to be seen
            self._spawn(self._load(found))

    async def _load(self, found: FoundModel) -> None:
        """Load a model, and let it take the place of the one with its name and version, which finishes what it has."""
        try:
            model = self._made(found)
            await self._loaded_before(model)
            async with self._at_once:
                before = self.serving.get(found.key) or self._newest.get(found.name)
                await model.load(before.recorded if before else None)
        except LoadError as error:
            earlier = self._failed.get(found.key)
            pause = min(2 * earlier.pause, LONGEST_PAUSE) if earlier and earlier.found == found else FIRST_PAUSE
            self._failed[found.key] = Failure(found, str(error), pause, time.monotonic() + pause)
            self._event("model failed", model=found.name, version=found.version, reason=str(error))
            return
        finally:
            self._loading.discard(found.key)
        if self.stopping:
            await model.close()
            return
        model.on_lost = self._host_lost
        self._failed.pop(found.key, None)
        old = self.serving.get(found.key)
        self._serve(self.serving | {found.key: model})
        self.on_model(model)
        if old is not None:
            self.reloads[found.name] += 1
            self._spawn(self._retire(old))

    def _made(self, found: FoundModel) -> Model:
        """The model or pipeline in a folder, not loaded yet. Raises LoadError."""
        if pipelines.is_pipeline(found.path):
            return Pipeline(found, self._settings, self.scheduler, self._event, self.find, self.bodies)
        return Model(found, self._settings, self.scheduler, self._event)

    async def _loaded_before(self, model: Model) -> None:
        """Wait while models are being loaded that this one needs; one that waits itself is not waited for."""
        if model.needs:
            self._waiting.add(model.found.key)
            while any(key[0] in model.needs for key in self._loading - self._waiting):
                await asyncio.sleep(0.02)
            self._waiting.discard(model.found.key)

    def _host_lost(self, model: Model) -> None:
        self._load_soon(model.found)

    async def _retire(self, model: Model) -> None:
        await model.drain(self._settings.timeout)
        if self.fronts is not None:
            await self.fronts.drained(model, self._settings.timeout)
        await model.close()
        self._event("model retired", model=model.name, version=model.version)

    async def _watch(self) -> None:
        """Look for changes; one counts when it was the same twice, so that files still being copied are left alone."""
        while self._settings.poll > 0:
            await asyncio.sleep(self._settings.poll)
            found = {model.key: model for model in await asyncio.to_thread(self.scan)}
            self._expected |= bool(found)
            for key, model in found.items():
                served = self.serving.get(key)
                failed = self._failed.get(key)
                current = failed.found if failed else served.found if served else None
                due = failed is not None and failed.again <= time.monotonic()
                if model == self._seen.get(key) and (due or current is None or current.state != model.state):
                    self._load_soon(model)
            for key in [key for key in self.serving if key not in found and key not in self._seen]:
                self._spawn(self._retire(self.serving[key]))
                self._serve({other: model for other, model in self.serving.items() if other != key})
            for key in [key for key in self._failed if key not in found]:
                del self._failed[key]
            self._seen = found

    async def stop(self) -> None:
        """End all processes. Requests have had their grace by now: what still runs, runs for nobody."""
        self.stopping = True
        if self.fronts is not None:
            await self.fronts.stop(LAST_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            await asyncio.gather(*(model.close() for model in list(self.serving.values())))
