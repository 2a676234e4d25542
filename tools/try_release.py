"""Install what was built as users will, into a fresh environment, and try it there.

    python tools/try_release.py out/dist                                    oprack[all], with the pinned versions
    python tools/try_release.py out/dist --python 3.13 --extras cpu
    python tools/try_release.py out/dist --resolution lowest-direct         the oldest dependencies that are promised

What oprack's distributions need of others comes from the package index; they themselves come from the folder alone, by
the name that users type. Each step is printed with the seconds that it took.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import zipfile
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = Path(__file__).with_name("smoke.py")
OURS = ("VIRTUAL_ENV", "PYTHONPATH", "OPRACK_PACKS", "OPRACK_BLOCK")


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a command that has to succeed, outside of this checkout's environment.

    Args:
        command: Its words.
        cwd: Where.

    Returns:
        What it printed.
    """
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def others(dist: Path, extras: list[str]) -> list[str]:
    """What the wheels in a folder ask of distributions that are not oprack's, for `oprack[extras]`."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    asked: dict[str, list[Requirement]] = {}
    for wheel in dist.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            header = HeaderParser().parsestr(archive.read(name).decode())
        asked[canonicalize_name(header["Name"])] = [Requirement(r) for r in header.get_all("Requires-Dist", [])]
    found: set[str] = set()
    pending, seen = [("oprack", extra) for extra in ("", *extras)], set()
    while pending:
        name, extra = pending.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for requirement in asked[name]:
            marker, target = requirement.marker, canonicalize_name(requirement.name)
            mine = f"extra == '{extra}'" in str(marker).replace('"', "'") if extra else "extra ==" not in str(marker)
            if mine and target in asked:
                pending += [(target, e) for e in ("", *requirement.extras)]
            elif mine and (marker is None or marker.evaluate({"extra": extra})):
                requirement.marker = None
                found.add(str(requirement))
    return sorted(found)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder with wheels")
    parser.add_argument("--python", default=sys.executable, help="interpreter, or its version (default: this one)")
    parser.add_argument("--extras", default="all", help="of oprack (%(default)s)")
    parser.add_argument("--resolution", choices=["pinned", "highest", "lowest-direct"], default="pinned")
    parser.add_argument("--environment", type=Path, default=ROOT / "out" / "try", help="made anew (%(default)s)")
    args = parser.parse_args()
    dist, environment = args.dist.resolve(), args.environment.resolve()
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if uv is None:
        raise SystemExit("there is no uv; pip install uv, or make setup")
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    extras, asked = args.extras.split(","), f"oprack[{args.extras}]"
    shutil.rmtree(environment, ignore_errors=True)
    install = (uv, "pip", "install", "--quiet", "--no-config", "--python", python)
    versions = {"pinned": ("--constraint", ROOT / "constraints.txt")}.get(args.resolution)
    versions = versions or ("--resolution", args.resolution)
    made = ("venv", "--quiet", "--no-project", "--no-python-downloads", "--python", args.python)
    steps = {
        "environment": (uv, *made, environment),
        "dependencies": (*install, *versions, *others(dist, extras)),
        # uv's cache may have the wheel of an earlier build under the same name
        asked: (*install, "--no-cache", "--no-index", "--find-links", dist, asked),
        "smoke test": (python, "-I", SMOKE, ROOT, *extras),
    }
    for title, command in steps.items():
        start = time.perf_counter()
        printed = run(*command, cwd=environment.parent if environment.parent.is_dir() else None)
        print(f"{title}: {time.perf_counter() - start:.1f} s", *printed.splitlines(), sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
