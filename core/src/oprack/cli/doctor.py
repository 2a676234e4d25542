"""oprack doctor [--imports] [--json]"""

from __future__ import annotations

import argparse
import os
import platform
import traceback
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_block, add_json, manager_of, print_json, working
from oprack.packs.checks import orphans
from oprack.python.text import printable

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager
    from oprack.packs.pack import PackInfo


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--imports",
        action="store_true",
        help="also import every definition, operator, kernel, layer and pass of every pack",
    )
    add_json(parser)
    add_block(parser)


def run(args: argparse.Namespace) -> int:
    with working("importing all that packs bring" if args.imports else "looking at packs"):
        facts = _facts(args)
    if args.json:
        print_json(facts)
    else:
        _print(facts)
    return FINDING if facts["problems"] else OK


def _facts(args: argparse.Namespace) -> dict[str, Any]:
    """All that there is to say."""
    from oprack.packs import advice
    from oprack.packs.checks import import_problems
    from oprack.packs.installed.resolve import MORE
    from oprack.packs.pack import BrokenPackWarning, PackWarning
    from oprack.packs.variables import unread, variables

    manager = manager_of(args)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PackWarning)
        warnings.simplefilter("ignore", BrokenPackWarning)
        packs = manager.packs()
    pass_problems, pass_notes = _pass_findings(manager) if args.imports else ([], [])
    waiting: list[str] = []
    known = variables(manager.targets("variable"))
    limit = _cache_limit()
    opened = {"place": _places(manager), "library": _libraries(manager)}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": _versions(),
        "cache": manager.cache_state,
        "cache_limit": limit,
        "places": opened["place"],
        "libraries": opened["library"],
        "variables": [asdict(v) | {"value": os.environ.get(v.name)} for v in known],
        "packs": [{**p.to_dict(), "traceback": _traceback(p)} for p in packs],
        "problems": [
            *([advice.NO_PACK] if advice.no_pack(p.distribution for p in packs) else ()),
            *(str(w.message) for w in caught if issubclass(w.category, PackWarning)),
            *(problem for pack in packs if (problem := _problem(pack))),
            *([limit] if isinstance(limit, str) else ()),
            *(advice.settled(one) for one in manager.index.settlements() if not one.by_user),
            *(f"{what} {n}: {s}" for what, found in opened.items() for n, s in found.items() if s.startswith("broken")),
            *((p.replace(MORE, "") for p in import_problems(manager, notes=waiting)) if args.imports else ()),
            *pass_problems,
        ],
        "notes": [*waiting, *unread(os.environ, known), *orphans(manager), *pass_notes],
        "imports": args.imports,
    }


def _versions() -> dict[str, str]:
    import importlib_metadata

    from oprack import __version__

    found = {"oprack": __version__}
    for name in ("numpy", "pluggy", "protobuf", "ml_dtypes", "importlib_metadata"):
        try:
            found[name] = importlib_metadata.version(name)
        except importlib_metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _cache_limit() -> int | str:
    """Bytes that the caches of a process like this one may take together, or what is wrong with that number."""
    from oprack.cache import BUDGET
    from oprack.errors import InvalidArgumentError

    try:
        return BUDGET.limit
    except InvalidArgumentError as error:
        return str(error)


def _places(manager: PackManager) -> dict[str, str]:
    """Kinds of places that can be opened, and why others can't."""
    from oprack.errors import OprackError

    found = {"cpu": "available"}
    for owner, kind, _ in manager.targets("place"):
        try:
            manager.extensions.place_factory(kind)
            found[kind] = f"brought by {owner}"
        except OprackError as e:
            found[kind] = f"broken: {type(e).__name__}: {e}"
    return found


def _libraries(manager: PackManager) -> dict[str, str]:
    """What each kernel library says of itself, or why it can't."""
    return {name: _status(library) for name, library in manager.extensions.libraries().items()}


def _status(library: Any) -> str:
    try:
        if isinstance(library, Exception):
            raise library
        return str(library.status())
    except Exception as e:  # of one pack, which stops no other
        return f"broken: {type(e).__name__}: {e}"


def _problem(pack: PackInfo) -> str:
    if pack.status == "broken":
        return f"pack {pack.name} ({pack.distribution} {pack.version}) is broken: {pack.error}"
    return ""


def _traceback(pack: PackInfo) -> list[str]:
    if pack.exception is None:
        return []
    return [line for part in traceback.format_exception(pack.exception) for line in part.rstrip().split("\n")]


def _pass_findings(manager: PackManager) -> tuple[list[str], list[str]]:
    """Problems of the passes that packs bring, and notes on them."""
    try:
        from oprack.ir.survey import survey_passes
    except ModuleNotFoundError as absent:
        count = len(manager.index.unique("pass")[0])
        return [], [f"the passes of packs, {count} in all, are not looked at: {absent}"] if count else []
    survey = survey_passes(manager)
    return survey.problems, survey.notes


def _print(facts: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    print(f"python {facts['python']} on {facts['platform']}\n{versions}\ncache of discovery: {facts['cache']}")
    print(f"caches of a process: {facts['cache_limit']} bytes at most (OPRACK_CACHE_LIMIT, oprack.set_cache_limit)")
    for kind, state in facts["places"].items():
        print(f"place {kind}: {state}")
    for name, state in facts["libraries"].items():
        print(f"library {name}: {state}")
    for variable in facts["variables"]:
        if variable["value"] is not None:
            print(f"environment: {variable['name']}={printable(variable['value'])}")
    for pack in facts["packs"]:
        count = f"{len(pack['ops'])} ops" + (f", {len(pack['layers'])} layers" if pack["layers"] else "")
        print(f"pack {pack['name']} ({pack['distribution']} {pack['version']}): {pack['status']}, {count}")
        for line in pack["traceback"]:
            print(f"    {line}")
    problems = facts["problems"]
    content = "everything is in order" if facts["imports"] else "all packs can be found and read"
    print(f"\n{len(problems)} problem(s)" + (":" if problems else f": {content}"))
    for problem in problems:
        print(f"- {problem}")
    for note in facts["notes"]:
        print(f"Note: {note}")
    if not facts["imports"]:
        print("Run `oprack doctor --imports` to import every op, kernel, layer and pass as well.")
