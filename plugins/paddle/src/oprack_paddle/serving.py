"""`import paddle`, served by oprack: an import hook, and how programs are run with it."""

from __future__ import annotations

import importlib.util
import os
import runpy
import shutil
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any, Self

VARIABLE = "OPRACK_PADDLE"
"""Set for the processes that a served program starts, such as workers and ranks."""


class PaddleFinder(MetaPathFinder, Loader):
    """Finds `paddle` and the modules below it in oprack_paddle."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a module of Paddle; None for others."""
        root, _, space = fullname.partition(".")
        if root != "paddle":
            return None
        from oprack_paddle.namespace import is_module

        if not is_module(space):
            return None
        return ModuleSpec(fullname, self, origin=__file__, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of the namespace, which is made once."""
        from oprack_paddle.namespace import module

        return module(spec.name.partition(".")[2])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: names are found when they are asked for."""


_FINDER = PaddleFinder()


def installed() -> str:
    """Where Paddle itself is installed; "" where it is not."""
    if _FINDER in sys.meta_path:
        return ""
    spec = importlib.util.find_spec("paddle")
    return "" if spec is None else str(spec.origin)


class as_paddle:
    """`import paddle` leads here from now on; as a context manager, inside of its block.

    Raises:
        PreconditionNotMetError: Paddle itself is imported already.
    """

    def __init__(self) -> None:
        real = sys.modules.get("paddle")
        if real is not None and not _is_ours(real):
            from oprack.errors import PreconditionNotMetError

            raise PreconditionNotMetError(
                f"as_paddle(): paddle is imported already from {getattr(real, '__file__', '?')}; call as_paddle() "
                "first, in a process that does not import paddle itself"
            )
        self._before = _modules_of_paddle()
        self._is_first = _FINDER not in sys.meta_path
        if self._is_first:
            sys.meta_path.insert(0, _FINDER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.uninstall()

    def uninstall(self) -> None:
        """Let `import paddle` lead where it led before."""
        if self._is_first and _FINDER in sys.meta_path:
            sys.meta_path.remove(_FINDER)
        for name in _modules_of_paddle():
            del sys.modules[name]
        sys.modules.update(self._before)


def _is_ours(module: ModuleType) -> bool:
    from oprack_paddle.namespace import Namespace

    return isinstance(module, Namespace)


def _modules_of_paddle() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "paddle"}


def serve(force: bool = False) -> bool:
    """Let `import paddle` lead here, from now on and in processes that this one starts.

    Args:
        force: Also where Paddle itself is installed.

    Returns:
        Whether oprack serves the name; False: Paddle is installed, and is left alone.
    """
    if _FINDER in sys.meta_path:
        return True
    where = "" if force else installed()
    if where:
        print(f"oprack: import paddle is Paddle itself, from {where}; --force serves it by oprack", file=sys.stderr)
        return False
    as_paddle()
    os.environ[VARIABLE] = "1"
    folder = os.path.join(os.path.dirname(__file__), "site")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in paths:  # its sitecustomize serves the name in Python processes that are started
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, paths)])
    print("oprack: import paddle is served by oprack", file=sys.stderr)
    return True


def run_script(argv: Sequence[str], force: bool = False) -> None:
    """Run a script, or a module after -m, as Python does.

    Args:
        argv: The script and its arguments.
        force: Serve the name also where Paddle itself is installed.
    """
    serve(force)
    if argv[0] == "-m":
        sys.argv = list(argv[1:])
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(argv)
    sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
    runpy.run_path(argv[0], run_name="__main__")


def run_command(argv: Sequence[str], force: bool = False) -> int:
    """Run a command whose Python programs find `paddle` here.

    Args:
        argv: The command and its arguments; a file that ends in .py is run by this Python.
        force: Serve the name also where Paddle itself is installed.

    Returns:
        2 where there is no such command; otherwise this process becomes the command.
    """
    beside = os.path.dirname(sys.executable)  # the commands of this environment, also where it is not activated
    found = shutil.which(argv[0]) or shutil.which(argv[0], path=beside)
    if argv[0].endswith(".py"):
        found, argv = sys.executable, [sys.executable, *argv]
    if found is None:
        print(
            f"oprack exec: no command {argv[0]!r}; expected one in PATH or {beside}, or a script that ends in .py",
            file=sys.stderr,
        )
        return 2
    serve(force)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(found, list(argv))
