"""Resolves the strings of a manifest to the modules and objects that they name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from oprack.errors import ManifestError, PackImportError
from oprack.python.interruption import let_interruptions_pass

MORE = " (`oprack doctor --imports` says more)"
REPAIR = f"repair or reinstall the distribution, or block the pack{MORE}"
MEND = (
    "mend the module, or install what it imports; what needs a library that may be missing belongs outside of ops, "
    "kernels and layers, all of whose modules are imported"
)


def import_module(name: str, asked_by: str, advice: str = REPAIR) -> Any:
    """Import a module.

    Args:
        name: Its name.
        asked_by: What needs it, for the message.
        advice: What to do when it can't be imported, for the message; MEND for an author's own source tree.

    Raises:
        PackImportError: The import failed. The message names the module, `asked_by` and the cause.
    """
    try:
        return importlib.import_module(name)
    # BaseException, since no pack may end the process: SystemExit, CancelledError, pytest's Skipped.
    except BaseException as e:
        let_interruptions_pass()
        failed = f"{asked_by}: importing {name!r} failed{_line_of(name, e)}"
        raise PackImportError(f"{failed}: {type(e).__name__}: {e}; {advice}") from e


def _line_of(name: str, error: BaseException) -> str:
    """Where in the package of a module its import stopped, as " at file:line"; "" if the error is of no line there."""
    top = name.partition(".")[0]
    import traceback  # for errors alone

    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == top:
            return f" at {frame.f_code.co_filename}:{line}"
    return ""


CORRECT = "correct the string where the pack registers it (`oprack doctor --imports` checks all of them)"
REGENERATE = "regenerate ops.toml with `oprack manifest PATH` if the object was renamed"


def import_object(target: str, asked_by: str, advice: str = CORRECT) -> Any:
    """Import the object that a string "module:name" names.

    Args:
        target: The string.
        asked_by: What needs the object, for the message.
        advice: How to repair a string that names nothing, for the message.

    Raises:
        ManifestError: The string does not have this form.
        PackImportError: The module can't be imported or has no such object.
    """
    module_name, colon, path = target.partition(":")
    if not colon or not path:
        raise ManifestError(f"{asked_by}: {target!r} names no object; expected a string such as 'my_pack.module:name'")
    value = import_module(module_name, asked_by)
    for part in path.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as e:
            raise PackImportError(
                f"{asked_by}: {target!r} names nothing: {module_name} has no {path!r}; {advice}"
            ) from e
    return value


def package_directory(package: str) -> Path | None:
    """Find the directory of a package without importing it or its parents; None when it is not on disk."""
    # Ask a package that is imported already, since it may have changed its __path__.
    if (module := sys.modules.get(package)) is not None:
        return next((Path(p) for p in getattr(module, "__path__", ())), None)
    top, *rest = package.split(".")
    try:
        # Only of the top-level package: find_spec of a subpackage would import its parents.
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        let_interruptions_pass()
        return None
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        directory = Path(location, *rest)
        if directory.is_dir():
            return directory
    return None


def require_no_rules(operator: Any, target: str) -> None:
    """Refuse rules in an operator class that a manifest names beside a definition, which has them.

    Args:
        operator: The class.
        target: The string that names it, for the message.

    Raises:
        ManifestError: It has a rule.
    """
    from oprack.op.facets import MEMBERS

    rules = [name for name in MEMBERS if getattr(operator, name, None) is not None]
    if rules:
        raise ManifestError(
            f"{target}: an operator class beside a definition runs the op, and its {', '.join(rules)} would not be "
            "read; move it to the definition class of the op, or declare the op by OpFacets in ops/"
        )
