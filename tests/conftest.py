"""What all cross-distribution tests share."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheels that this run of the tests has built, for all of its workers."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "wheels"


@pytest.fixture(scope="session")
def lac_models() -> Path:
    """The folder that holds the LAC models."""
    spec = importlib.util.spec_from_file_location("fetch_lac", ROOT / "examples" / "fetch_lac.py")
    fetch_lac = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fetch_lac)
    try:
        return fetch_lac.fetch()
    except fetch_lac.DownloadError as error:
        pytest.skip(f"the LAC models are not in .downloads and cannot be fetched: {error}")
