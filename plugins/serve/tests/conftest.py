"""Models that the tests serve, and one server of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import served


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("image", "text", "centred", "slow"):
        served.save(folder / name, getattr(served, name))
    for version, factor in (("1", 10.0), ("2", 20.0)):
        served.save(folder / "scaled" / version, served.scaled(factor))
    (folder / "broken").mkdir()
    (folder / "broken" / "model.pdmodel").write_bytes(b"no program")
    (folder / "broken" / "model.pdiparams").write_bytes(b"")
    return folder


@pytest.fixture(scope="session")
def server(models: Path) -> Iterator[served.Served]:
    """The server of the folder, with one worker and a delay that lets requests meet."""
    options = ("--max-delay", "20", "--timeout", "5", "--read-timeout", "1.5", "--max-body", "1M", "--allow-trace")
    running = served.Served("--models", str(models), "--poll", "0", "--max-queue", "40", *options)
    yield running
    if running.process.poll() is None:
        running.stop()
