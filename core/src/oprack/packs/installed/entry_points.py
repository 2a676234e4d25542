"""Entry points of installed distributions, and whether what a distribution requires is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from oprack.python.interruption import let_interruptions_pass

GROUP = "oprack.packs"
CORE = "core"
UNREADABLE = "!"
# a line that is a group, or was meant to be one
_GROUP_LINE = re.compile(rf"(?m)^[^=#;\n]*(?<![\w.]){re.escape(GROUP)}(?![\w.])[^=\n]*$")


class FoundPack(NamedTuple):
    """An entry point as a distribution declares it.

    Attributes:
        metadata: Path of its entry_points.txt, "" when unknown.
        unmet: What of its requirements the installed versions of oprack and of other packs don't meet, in words.
    """

    name: str
    value: str
    distribution: str
    version: str
    metadata: str = ""
    unmet: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """Both names by which OPRACK_PACKS, OPRACK_BLOCK and block() know it."""
        return self.name, self.distribution

    @property
    def target(self) -> str:
        """What the entry point names, "module" or "module:object", without extras."""
        return self.value.partition("[")[0].replace(" ", "")

    @property
    def module(self) -> str:
        """The module that the entry point names."""
        return self.target.partition(":")[0]


def installed_packs() -> list[FoundPack]:
    """Every entry point of installed distributions, sorted by distribution and name.

    A distribution whose entry points can't be read is listed with none, so that loading it says why.
    """
    import importlib_metadata

    found: dict[str, list[FoundPack]] = {}
    requirements: dict[str, list[str]] = {}
    for dist in importlib_metadata.distributions():
        text = ""
        try:
            if GROUP not in (text := dist.read_text("entry_points.txt") or ""):
                continue
        except (OSError, UnicodeDecodeError):
            let_interruptions_pass()
            if b"oprack" not in _raw_entry_points(dist):
                continue
        name, version, metadata = _distribution(dist)
        if name in found:
            continue  # hidden by one of the same name, earlier on the path
        try:
            entry_points = [e for e in dist.entry_points if e.group == GROUP]
        except Exception as e:
            let_interruptions_pass()
            found[name] = [FoundPack(name, f"{UNREADABLE}{type(e).__name__}: {e}", name, version, metadata)]
        else:
            found[name] = list(describe(entry_points))
            if not entry_points and _GROUP_LINE.search(text):
                why = f"{UNREADABLE}its entry_points.txt has the group {GROUP}, but no entry point can be read in it"
                found[name] = [FoundPack(name, why, name, version, metadata)]
        requirements[name] = required(dist)
    versions = {name: packs[0].version for name, packs in found.items() if packs} | {"oprack": _core_version()}
    lacking = {name: unmet(texts, versions) for name, texts in requirements.items()}
    every = (f._replace(unmet=lacking[f.distribution]) for packs in found.values() for f in packs)
    return sorted(every, key=lambda f: (f.distribution, f.name))


def _raw_entry_points(dist: Any) -> bytes:
    try:
        return Path(_distribution(dist)[2]).read_bytes()
    except OSError:
        let_interruptions_pass()
        return b""


def describe(entry_points: Iterable[Any]) -> Iterator[FoundPack]:
    """FoundPack of each importlib.metadata EntryPoint; the one of the core itself is left out."""
    for e in entry_points:
        if (e.name, e.value) == (BUILTIN.name, BUILTIN.value):
            continue
        name, version, metadata = _distribution(e.dist)
        yield FoundPack(e.name, e.value, name, version, metadata)


def _distribution(dist: Any) -> tuple[str, str, str]:
    if dist is None:
        return "unknown distribution", "", ""
    directory = getattr(dist, "_path", None)  # METADATA is slow to parse; the directory says name-version.dist-info
    if isinstance(directory, Path):
        name, dash, version = directory.name.removesuffix(".dist-info").partition("-")
        metadata = str(directory / "entry_points.txt")
        if dash and directory.name.endswith(".dist-info"):
            return name.replace("_", "-").lower(), version, metadata
        return dist.name, dist.version, metadata
    return dist.name, dist.version, ""


def _core_version() -> str:
    from oprack import __version__

    return __version__


BUILTIN = FoundPack(CORE, "oprack.packs.builtin", "oprack", _core_version())
HERE = FoundPack("here", "", "this process", "")
"""What is registered in this process, by no distribution."""


_LINE = re.compile(r"(?mi)^Requires-Dist:[ \t]*(.+?)[ \t]*$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def required(distribution: Any) -> list[str]:
    """The requirements of an importlib.metadata distribution, as it declares them."""
    try:
        # Only the headers: parsing all of METADATA as a message is slow, and the text below them is a README.
        text = distribution.read_text("METADATA") or ""
    except (OSError, UnicodeDecodeError):
        let_interruptions_pass()
        return []
    return _LINE.findall(text.replace("\r\n", "\n").partition("\n\n")[0])


def unmet(requirements: Iterable[str], versions: Mapping[str, str]) -> str:
    """What of the requirements the installed versions don't meet, in words; "" when they meet all.

    Args:
        requirements: As in METADATA, such as "oprack>=0.1,<0.3".
        versions: Distribution -> installed version. Requirements on others are left to pip.
    """
    problems = []
    for text in requirements:
        name = re.sub(r"[-_.]+", "-", found[0]).lower() if (found := _NAME.match(text)) else ""
        if name in versions and len(text.partition(";")[0].strip()) > len(name):
            problems += _problem(text, name, versions[name])
    return " and ".join(problems)


def _problem(text: str, name: str, version: str) -> list[str]:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion

    try:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            return []
        if requirement.specifier.contains(version, prereleases=True):
            return []
    except (InvalidRequirement, InvalidVersion):
        return []  # pip would not have installed it: nothing that can be compared
    return [f"needs {name} {requirement.specifier}, but {name} {version} is installed"]
