"""Pages made from code: hooks, environment variables, errors, commands and the Python interface."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import oprack
from formulas import in_cell
from oprack import default_manager, errors
from oprack.cli.main import COMMANDS, EXIT_CODES, build_parser, pack_commands
from oprack.packs import hookspecs
from oprack.packs.variables import variables

ROOT = Path(__file__).parents[2]
PARTS = [Path(part) for part in oprack.__path__]


def reference_pages(rooms: Collection[str] = ()) -> dict[str, str]:
    """Markdown by path, for the folder reference/.

    Args:
        rooms: Modules to which the interface of Python is limited, the pages of others being empty; () for all.
    """
    pages = {"hooks": hooks(), "variables": environment(), "errors": error_classes(), "commands": commands()}
    return {f"reference/{name}.md": text for name, text in pages.items()} | api_pages(rooms)


def hooks() -> str:
    """Every hook by its specification, and every method of the `register` object that it gets."""
    lines = [
        "# Hooks",
        "",
        "A pack or plugin is a module that an entry point `oprack.packs` names, with functions that carry "
        "`@oprack.hookimpl` and have the names below. The PackManager calls those of one pack at a time, when packs "
        "are first asked for, in this order. Each gets a `register` object that is bound to the pack.",
        "",
    ]
    for name in hookspecs.HOOKS:
        lines += [f"## {name}", "", _words(inspect.getdoc(getattr(hookspecs, name)) or ""), ""]
    lines += ["## The register object", "", "::: oprack.packs.register.Register", "    options:"]
    return "\n".join([*lines, "      heading_level: 3", "      inherited_members: true", ""])


def environment() -> str:
    """The table of environment variables."""
    rows = [f"| `{v.name}` | {v.owner} | {in_cell(v.default)} | {in_cell(v.meaning)} |" for v in
            variables(default_manager().targets("variable"))]  # fmt: skip
    return "\n".join(
        [
            "# Environment variables",
            "",
            "`oprack doctor` prints those that are set, and names that begin with `OPRACK_` but that nothing reads.",
            "",
            "| Variable | Read by | Default | Meaning |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def error_classes() -> str:
    """Every class of errors with its cause, the built-in exception that it also is, and the modules that raise it."""
    raised = _raisers()
    source = inspect.getsource(errors)
    lines = [
        "# Errors",
        "",
        "Every message says what was passed, what was expected and how to fix it, and names the op, the variable or "
        "the pack. The class says what kind of cause it was, so that a program can tell them apart without reading "
        "text. The table is made from `oprack.errors`.",
        "",
    ]
    for title, body in _sections(source):
        rows = [_error_row(name, raised[name]) for name in re.findall(r"^class (\w+)\(", body, re.MULTILINE)]
        lines += [f"## {title}", "", "| Error | Is a | Cause | Raised in |", "| --- | --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _sections(source: str) -> list[tuple[str, str]]:
    """The parts of oprack.errors by the comments that part them."""
    parts = re.split(r"^# ([\w ]+) -{5,}$", source, flags=re.MULTILINE)
    return [("In general", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def _error_row(name: str, modules: set[str]) -> str:
    cls = getattr(errors, name)
    bases = ", ".join(f"`{b.__name__}`" for b in cls.__bases__)
    rooms = sorted({".".join(m.split(".")[:2]) for m in modules})
    return f"| `{name}` | {bases} | {in_cell(inspect.getdoc(cls) or '')} | {', '.join(f'`{r}`' for r in rooms)} |"


def _raisers() -> dict[str, set[str]]:
    """The modules of the package oprack that raise each class."""
    found = defaultdict(set)
    for part, file in ((p, f) for p in PARTS for f in p.rglob("*.py")):
        module = ".".join(("oprack", *file.relative_to(part).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            called = node.exc.func if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else None
            name = getattr(called, "attr", None) or getattr(called, "id", "")
            if hasattr(errors, name):
                found[name].add(module)
    return found


def commands() -> str:
    """What `oprack --help` and `oprack COMMAND --help` print."""
    known = [*COMMANDS, *pack_commands()]
    lines = ["# Commands", "", "```text", EXIT_CODES.rstrip(), "```", ""]
    for name in known:
        parser = build_parser(name)
        chosen = next(a for a in parser._subparsers._group_actions if name in a.choices).choices[name]
        chosen.epilog = None
        lines += [f"## oprack {name}", "", "```text", chosen.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


API = {
    "oprack": ("The package", "Names of `oprack` itself, each from the module that defines it."),
    "oprack.nn": ("Modules", "Modules, parameters and containers; packs bring most modules."),
    "oprack.optimizer": ("Optimizers", "Optimizers, schedules of learning rates, clips; packs bring them."),
    "oprack.initializer": ("Initializers", "How parameters begin; packs bring them."),
    "oprack.io": ("Files", "Models, parameters and checkpoints."),
    "oprack.inference": ("Inference", "The interface of `paddle.inference`."),
    "oprack.layers": ("Programs", "Functions by which programs are written; packs bring the layers."),
    "oprack.op": ("Definitions of ops", "What an op is made of."),
    "oprack.kernel": ("Kernels", "How a kernel is declared and chosen."),
    "oprack.ir": ("Passes", "Graphs, patterns and the passes that rewrite them."),
    "oprack.parallel": ("Several ranks", "Layouts of global tensors, and what moves between ranks."),
    "oprack.device": ("Places", "Contexts of devices, and what runs on them."),
    "oprack.packs": ("Packs", "Who brings what."),
    "oprack.testing": ("Testing", "Cases, conformance of packs, and checks of passes."),
    "oprack.runtime": ("Running", "Executors, plans, checks and the profiler."),
    "oprack.tensor": ("Data", "Tensors, places and scopes."),
}


ORDER = tomllib.loads(Path(__file__).with_name("reference_order.toml").read_text("utf-8"))


def api_pages(only: Collection[str] = ()) -> dict[str, str]:
    """A page for each room that users import from; mkdocstrings fills in the docstrings."""
    homes: dict[str, str] = {}
    rooms = sorted(API, key=lambda room: room == "oprack")  # what others have as well stands there, and is linked here
    return {_path(room): _api(room, *API[room], homes) if not only or room in only else f"# `{room}`" for room in rooms}


def _path(room: str) -> str:
    return f"reference/{room.replace('.', '_')}.md"


def _api(room: str, title: str, about: str, homes: dict[str, str]) -> str:
    """The page of a room. homes: the page of each path that was written before; grows."""
    module = importlib.import_module(room)
    listed = getattr(module, "__all__", None) or getattr(module, "_HOMES", ())
    namespace = room.partition(".")[2]
    brought = {
        key.partition(".")[2] for _, key, _ in default_manager().targets("layer") if key.startswith(namespace + ".")
    }
    targets = {name: _target(getattr(module, name)) for name in sorted({*listed, *brought})}
    lines = [f"# {title}: `{room}`", "", about, ""]
    elsewhere = {name: homes[t] for name, t in targets.items() if t and homes.setdefault(t, room) != room}
    for name, home in elsewhere.items():
        lines.append(f"- [`{name}`]({_path(home).removeprefix('reference/')}#{targets[name]})")
    lines.append("")
    here = {name: target for name, target in targets.items() if target and name not in elsewhere}
    sections = ordered(room, here)
    for heading, paths in sections:
        lines += [f"## {heading}", ""] if heading else []
        for path in paths:
            lines += [f"::: {path}", "    options:", f"      heading_level: {3 if heading else 2}", ""]
    return "\n".join([*lines, *_of_ops([name for name, target in targets.items() if not target])])


def ordered(room: str, targets: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Sections of the page of a room: heading and paths for mkdocstrings, in the order of reference_order.toml.

    Args:
        room: The room.
        targets: The path of each name.
    """
    left = dict(targets)
    found = []
    for heading, text in ORDER.get(room, {}).items():
        wanted = text.split()
        whole = [want for want in wanted if "." in want and want.rpartition(".")[2][0].isupper()]
        modules = tuple(f"{want}." for want in wanted if "." in want and want not in whole)
        names = [want for want in wanted if want in left]
        names += [name for name, path in left.items() if name not in names and path.startswith(modules or "-")]
        paths = [left.pop(name) for name in names]
        found.append((heading, list(dict.fromkeys([*paths[:1], *whole, *paths[1:]]))))
    rest = list(dict.fromkeys(left.values()))
    return [*found, ("More" if found else "", rest)] if rest else found


def _of_ops(names: Sequence[str]) -> list[str]:
    """Links to the pages of ops whose layers are made from their definitions."""
    known = default_manager().op_types()
    linked = [f"[{name}](../ops/{name}.md)" for name in names if name in known]
    if not linked:
        return []
    words = "These are made from the definitions of ops: inputs in order, and attributes as keywords."
    return ["## Layers of ops", "", words, "", ", ".join(linked), ""]


def _target(value: object) -> str:
    """The path by which mkdocstrings finds a name in the sources; "" for what is no class or function there."""
    function = inspect.unwrap(value) if callable(value) else value
    written = inspect.isfunction(function) and not function.__code__.co_filename.startswith("<")
    if not (isinstance(function, type) or (written and function.__code__.co_name == function.__name__)):
        return ""
    path = f"{function.__module__}.{function.__qualname__}"
    return path if path.startswith("oprack") and "<locals>" not in path else ""


def _words(doc: str) -> str:
    """A docstring as paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in doc.split("\n\n"))
