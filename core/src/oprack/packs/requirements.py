"""The version ranges that packs declare, compared with the core and the packs that are installed.

pip compares them when it installs a distribution, but not when one that others need is installed later, and not with
`--no-deps`. Only requirements of one pack on another and on the core count here; libraries are pip's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from oprack.interruption import let_interruptions_pass

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
