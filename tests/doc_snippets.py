"""Runs the code of a page as its reader would: Python and commands from top to bottom, in one empty folder.

A block `python` is executed, all of a page in one namespace; with `title="path"`, as blocks `toml` and others, it is a
file that is written. A block `text` right behind it is what it prints. A block `console` has commands behind `$ `, each
with what it prints; `...` stands for anything. After `pip install -e FOLDER` everything runs in processes of its own,
which find the pack in that folder.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pack_site
from _pytest.doctest import _get_checker
from oprack.cli.main import main

_BLOCK = re.compile(r"^( *)```(\w+)(?: +title=\"([^\"]+)\")?[^\n]*\n(.*?)^\1```[^\n]*$", re.MULTILINE | re.DOTALL)
_CHECKER = _get_checker()
# Numbers are compared as far as they are written: the last bits of a float depend on the processor.
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.register_optionflag("NUMBER")


@dataclass
class Block:
    """A fenced block of a page.

    Attributes:
        kind: Its language.
        title: The file that it is, or "".
        code: Its text.
        line: Where it begins.
        prints: Whether it is what the block before it prints.
    """

    kind: str
    title: str
    code: str
    line: int
    prints: bool = False


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page that have a language."""
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(text):
        indent, kind, title, code = match.groups()
        code = re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)
        follows = bool(found) and found[-1].kind == "python" and not text[end : match.start()].strip()
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(kind, title or "", code, line, prints=kind == "text" and follows))
        end = match.end()
    return found


@dataclass
class Reader:
    """Runs blocks in a folder.

    Attributes:
        page: Its name, for messages.
        folder: Where commands run and files are written.
        skipped: Commands that are left alone, by their first word; `pip install` of others among them.
    """

    page: str
    folder: Path
    skipped: frozenset[str] = frozenset({"pip", "make", "curl", "tensorboard"})
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})
    paths: list[Path] = field(default_factory=list)
    ran: int = 0

    def run(self, text: str) -> None:
        """Run a page; raises AssertionError with the line of what went wrong."""
        printed = ""
        for block in blocks(text):
            where = f"{self.page}, line {block.line}"
            if block.title:
                path = self.folder / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.code, "utf-8")
            elif block.kind == "python":
                printed = self._python(block, where)
            elif block.prints:
                _same(block.code, printed, where)
            elif block.kind == "console":
                self._console(block.code, where)

    def _python(self, block: Block, where: str) -> str:
        self.ran += 1
        if self.paths:
            return self._process([sys.executable, "-c", block.code], where)
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.chdir(self.folder):
            exec(compile("\n" * block.line + block.code, self.page, "exec"), self.names)
        return stream.getvalue()

    def _console(self, code: str, where: str) -> None:
        for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
            command, _, wanted = part.partition("\n")
            printed = self._command(shlex.split(command.replace("\\\n", " "), comments=True), f"{where}: {command}")
            if printed is not None and wanted.strip():
                _same(wanted, printed, f"{where}: {command}")

    def _command(self, words: list[str], where: str) -> str | None:
        """What a command prints; None when it is one of those that are left alone."""
        if words[:3] == ["pip", "install", "-e"]:
            self._install(self.folder / words[3])
            return None
        if words[0] in self.skipped:
            return None
        self.ran += 1
        if words[0] == "cd":
            self.folder = self.folder / words[1]
            return None
        if words[0] == "rm":
            (self.folder / words[1]).unlink()
            return None
        # manifest and check import the pack's own code, which has no place in this process
        if words[0] == "oprack" and not self.paths and words[1] not in ("manifest", "check"):
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream), contextlib.chdir(self.folder):
                code = main(words[1:])
            assert code == 0, f"{where}\n{stream.getvalue()}"
            return stream.getvalue()
        known = {"oprack": ["-m", "oprack"], "python": [], "pytest": ["-m", "pytest", "-q", "-p", "no:cacheprovider"]}
        assert words[0] in known, f"{where}: the tests don't know this command"
        return self._process([sys.executable, *known[words[0]], *words[1:]], where)

    def _install(self, project: Path) -> None:
        """What `pip install -e` does for the packs of these pages: metadata with the entry point, and the sources."""
        facts = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
        site = project.parent / f"site-{project.name}"
        pack_site.write_metadata(site, facts["name"], facts["version"], facts["entry-points"][pack_site.GROUP])
        self.paths += [site, (project / "src").resolve()]

    def _process(self, command: list[str], where: str) -> str:
        env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, self.paths)), "OPRACK_CACHE": "0"}
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"{where}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


def _same(wanted: str, got: str, where: str) -> None:
    example = doctest.Example("", wanted)
    if not _CHECKER.check_output(example.want, got, _FLAGS):
        raise AssertionError(f"{where}\n{_CHECKER.output_difference(example, got, _FLAGS)}")
