"""Files of core and packs that this process loaded: what a result that is kept on disk depends on, versions aside."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from oprack.packs.contributions import STARTED, file_state
from oprack.packs.discovery import Pack


def loaded_files(packs: Iterable[Pack]) -> list[tuple[str, int, int]]:
    """(path, mtime in ns, size) of the modules of core and of packs that were imported so far, and of the manifests.

    As with .pyc files, a file that has the mtime and size of then is taken for the same. Development installs change
    their code and not their version; this notices it.
    """
    packages = {"oprack", *(pack.found.module.partition(".")[0] for pack in packs)}
    paths = {path for pack in packs for path, _, _ in pack.contributions.files}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in packages and (path := getattr(module, "__file__", None)):
            paths.add(path)
    return [(path, *file_state(path)) for path in sorted(paths)]


def changed_since_start(files: Iterable[tuple[str, int, int]]) -> str:
    """A file that was written after this process began, so that it may not be what was imported; "" for none."""
    return next((path for path, mtime, _ in files if mtime >= STARTED), "")
