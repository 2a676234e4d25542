"""What a plugin registers, that is no op: places, kernel libraries, observers, commands."""

from __future__ import annotations

import json
from typing import Any

from oprack.errors import DefinitionError
from oprack.packs.contributions import Contributions
from oprack.packs.variables import CORE, PREFIX


class PluginRegister:
    """Takes what one distribution brings beside ops.

    Args:
        pack: The pack.
        owner: Its distribution.
    """

    def __init__(self, pack: str, owner: str) -> None:
        self.pack, self.owner = pack, owner
        self.contributions = Contributions()

    def __repr__(self) -> str:
        return f"<register of pack {self.pack} ({self.owner})>"

    def place(self, kind: str, factory: str, place: str = "") -> None:
        """A sort of place.

        Args:
            kind: Its kind, by which users name it: `x.to("toy")`, `x.to("toy:1")`.
            factory: "module:name" of a function that opens the device context of a Place.
            place: "module:name" of the class derived from `oprack.tensor.Place`; without it the kind is no name.
        """
        self._target("place", kind, factory)
        if place:
            self._target("place class", kind, place)

    def library(self, name: str, target: str, attr: str = "") -> None:
        """A kernel library, and "module:name" of the object that speaks for it (see the hook oprack_libraries).

        The object may have `identity()`: a text that says what its passes depend on besides the pack's code, such as
        the version of what it wraps. Models that they rewrote are stored on disk under it.

        Args:
            attr: The attribute of ops that asks for it when true and declines it when false; it counts in runs that
                choose this library by attribute (`Executor(libraries_by_attr=...)`).
        """
        self._target("library", name, target)
        if attr:
            self.contributions.targets.append(("library attribute", name, attr))

    def observer(self, observer: Any) -> None:
        """An observer of runs: the object, or "module:name" of one."""
        self._target("observer", "", observer)

    def format(self, suffix: str, target: str, *, starts: str) -> None:
        """A sort of program files, and "module:name" of the function that reads them (see the hook oprack_formats).

        Args:
            suffix: Of the files, as ".json"; directories and paths without a suffix are searched for it.
            target: The function.
            starts: The text with which such a file begins, after white space; by it bytes without a name are known.

        Raises:
            DefinitionError: The suffix or `starts` is none, or the suffix is brought twice.
        """
        named = isinstance(suffix, str) and suffix[:1] == "." and suffix[1:].isalnum()
        if not named or not isinstance(starts, str) or not starts:
            raise DefinitionError(
                f"{self!r}: format({suffix!r}, ..., starts={starts!r}); expected a suffix such as '.json', and the "
                "text with which these files begin"
            )
        if any(kind == "format" and json.loads(key)["suffix"] == suffix for kind, key, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: format {suffix!r} is registered twice by this pack")
        self._target("format", json.dumps({"suffix": suffix, "starts": starts}), target)

    def command(self, name: str, target: str, summary: str) -> None:
        """A subcommand of `oprack`.

        Args:
            name: What users type.
            target: "module:function" that configures its parser; it sets the default `run`: a function of the parsed
                arguments that returns the exit code.
            summary: One line of help.

        Raises:
            DefinitionError: The name can't be typed, or is brought twice.
        """
        if not (isinstance(name, str) and name.replace("-", "_").isidentifier() and name[0].isalpha()):
            raise DefinitionError(
                f"{self!r}: command({name!r}, ...) is no name of a command; expected letters, digits and '-'"
            )
        if not isinstance(target, str) or not isinstance(summary, str):
            raise DefinitionError(
                f"{self!r}: command({name!r}, {target!r}, {summary!r}); expected a string such as "
                "'my_pack.command:configure', which is imported when the command is called, and a line of help"
            )
        if any(kind == "command" and json.loads(k)["name"] == name for kind, k, _ in self.contributions.targets):
            raise DefinitionError(f"{self!r}: command {name!r} is registered twice by this pack")
        self._target("command", json.dumps({"name": name, "summary": summary}), target)

    def variable(self, name: str, *, default: str, meaning: str) -> None:
        """An environment variable that the pack reads, for `oprack doctor` and the documents.

        Args:
            name: Its name, which begins with OPRACK_.
            default: What holds when it is not set, in words.
            meaning: What its values mean.

        Raises:
            DefinitionError: The name is another one, the core's or brought twice, or a text is missing.
        """
        if not all(isinstance(t, str) and t for t in (name, default, meaning)) or not name.startswith(PREFIX):
            raise DefinitionError(
                f"{self!r}: variable({name!r}, default={default!r}, meaning={meaning!r}); expected a name that begins "
                f"with {PREFIX}, and two texts"
            )
        known = {json.loads(key)["name"] for kind, key, _ in self.contributions.targets if kind == "variable"}
        if name in known:
            raise DefinitionError(f"{self!r}: variable {name!r} is registered twice by this pack")
        if any(v.name == name for v in CORE):
            raise DefinitionError(f"{self!r}: variable {name!r} is one of the core's; choose another name")
        key = json.dumps({"name": name, "default": default, "meaning": meaning})
        self.contributions.targets.append(("variable", key, name))

    def communicator(self, engine: str, target: str) -> None:
        """An engine for several ranks, and "module:name" of the function that opens its world (see the hook).

        Args:
            engine: What users give to `oprack.parallel.init`.
            target: A function without arguments that returns the Communicator of all ranks.
        """
        self._target("communicator", engine, target)

    def preparation(self, op_type: str, target: str) -> None:
        """A rewrite without which programs with ops of a type can't run (see the hook oprack_passes).

        Args:
            op_type: The op.
            target: "module:name" of a function that gets such a ProgramDesc and returns another one, or the same.
        """
        self._target("preparation", op_type, target)

    def _target(self, kind: str, key: str, target: Any) -> None:
        if isinstance(target, str) and not all(target.partition(":")):
            raise DefinitionError(f"{self!r}: {kind} {target!r}; expected a string such as 'my_pack.module:name'")
        self.contributions.targets.append((kind, key, target))
