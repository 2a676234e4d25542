"""The distributions of this repository: build them, look into them, give them a version, print what a release brings.

python tools/distributions.py build out/dist        sdists and wheels of all, and what must be in them
python tools/distributions.py version 0.2.0         write the version wherever it is written; without one, print it
python tools/distributions.py notes 0.1.0           the summary in CHANGELOG.md, for the release's page
python tools/distributions.py names                 the names of all, one a line
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST_GLIBC = (2, 27)  # what oneDNN's library needs
# one of ours in a list, with extras and a version or without
REQUIREMENT = re.compile(r'"(oprack(?:-[\w-]+)?)(\[[\w,-]+\])?(?:~=[^"]*)?"(?=\s*[,\]])')
# Where else the version stands: file -> what comes before it
STATED = {
    "core/src/oprack/__init__.py": r'^__version__ = "',
    "docs/concepts/packs.md": r"^math +oprack-math +",
    "plugins/serve/deploy/helm/oprack-serve/Chart.yaml": r'^(?:version: |appVersion: ")',
    "plugins/serve/deploy/kserve-cluster.yaml": "image: oprack-serve:",
    "plugins/serve/deploy/kserve.yaml": "image: oprack-serve:",
    "plugins/serve/tests/data/helm_chart.yaml": 'image: "oprack-serve:',
}
SUMMARY_LINES = 15


def projects() -> dict[str, Path]:
    """All distributions: name -> folder, the core first."""
    files = [ROOT / "core" / "pyproject.toml", *sorted(ROOT.glob("op_packages/*/pyproject.toml"))]
    files += [*sorted(ROOT.glob("plugins/*/pyproject.toml")), ROOT / "stubs" / "pyproject.toml"]
    return {tomllib.loads(f.read_text(encoding="utf-8"))["project"]["name"]: f.parent for f in files}


def native(folder: Path) -> dict[str, str]:
    """The platforms for which a distribution has native code: pip's name of each -> zig's; `[tool.oprack.wheels]`."""
    tools = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("tool", {})
    return tools.get("oprack", {}).get("wheels", {})  # type: ignore[no-any-return]


def version() -> str:
    """The version of all distributions: the core's."""
    return tomllib.loads((ROOT / "core" / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def hatch(folder: Path, target: Path, *kinds: str, **variables: str) -> None:
    """Build a project by the hatchling of this environment."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    command += [word for kind in kinds for word in ("-t", kind)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{folder}: {' '.join(command)} failed\n{done.stdout}{done.stderr}")


def build(target: Path) -> None:
    """Build sdist and wheels of every distribution into an empty folder, and look into them.

    Args:
        target: The folder; what is in it is removed.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    unbuilt: list[str] = []
    for name, folder in projects().items():
        hatch(folder, target, "sdist", "wheel", OPRACK_WHEEL_PLATFORM="any")
        for platform, zig in native(folder).items():
            # zig, which its wheel brings, compiles for other systems, and for an old glibc
            compiler = f"{sys.executable} -m ziglang cc -target {zig}"
            hatch(folder, target, "wheel", OPRACK_WHEEL_PLATFORM=platform, CC=compiler)
            if not list(target.glob(f"{name.replace('-', '_')}-*-{platform}.whl")):
                unbuilt.append(f"{name}: `{compiler}` failed, so it has no wheel for {platform}")
    problems = [p for wheel in sorted(target.glob("*.whl")) for p in look_into(wheel)]
    problems += [p for sdist in sorted(target.glob("*.tar.gz")) for p in rebuild(sdist, target)]
    problems += shared_files(target)
    built = {f.name.split("-")[0].replace("_", "-") for f in target.glob("*.whl")}
    problems += [f"{name}: no wheel was built" for name in projects().keys() - built]
    if problems or unbuilt:
        raise SystemExit("\n".join([*problems, *unbuilt]))
    print(f"{len(list(target.iterdir()))} files of {len(built)} distributions in {target}")


def look_into(wheel: Path) -> list[str]:
    """What is wrong with a wheel: its version, its licence, its types, and the glibc that its native code needs."""
    found, said = [], version()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        header = HeaderParser().parsestr(archive.read(metadata).decode())
        licences = {n.rpartition("/")[2] for n in names if "/licenses/" in n}
        if header["Version"] != said:
            found.append(f"{wheel.name}: version {header['Version']}; expected {said}, as of core")
        if not licences >= {"LICENSE", "NOTICE"}:
            found.append(f"{wheel.name}: has {sorted(licences)} of LICENSE and NOTICE")
        # what is part of the package oprack is typed by the core's
        missing = {n.split("/")[0] for n in names if n.endswith((".py", ".pyi"))} - {"oprack"}
        missing -= {n.split("/")[0] for n in names if n.endswith("/py.typed")}
        if missing or ("oprack/py.typed" not in names and header["Name"] == "oprack"):
            found.append(f"{wheel.name}: has no py.typed in {sorted(missing) or 'oprack'}")
        libraries = [n for n in names if re.search(r"\.so(\.\d+)*$", n)]
        for name in libraries:
            newest = max(map(glibc, re.findall(rb"GLIBC_([0-9.]+)", archive.read(name))), default=(0,))
            if newest > OLDEST_GLIBC:
                found.append(f"{wheel.name}: {name} needs glibc {newest}; expected at most {OLDEST_GLIBC}")
    if bool(libraries) == wheel.name.endswith("-any.whl"):
        found.append(f"{wheel.name}: native code {libraries} in a wheel of this platform")
    return found


def shared_files(folder: Path) -> list[str]:
    """Files that two distributions install: whichever comes last overwrites the other's."""
    owners: dict[str, str] = {}
    found = []
    for wheel in sorted(folder.glob("*.whl")):
        name = wheel.name.split("-")[0]
        for file in zipfile.ZipFile(wheel).namelist():
            if owners.setdefault(file, name) != name:
                found.append(f"{wheel.name}: {file} is also a file of {owners[file]}")
    return found


def glibc(text: bytes) -> tuple[int, ...]:
    """A version of glibc as numbers."""
    return tuple(int(n) for n in text.decode().split(".") if n)


def rebuild(sdist: Path, target: Path) -> list[str]:
    """What a wheel that is built from an sdist lacks beside the one that was built from the checkout."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (unpacked,) = folder.iterdir()
        hatch(unpacked, folder / "wheel", "wheel", OPRACK_WHEEL_PLATFORM="any")
        (again,) = (folder / "wheel").glob("*.whl")
        first = target / again.name
        a, b = (set(zipfile.ZipFile(wheel).namelist()) for wheel in (first, again))
    return [f"{sdist.name}: the wheel built from it differs in {sorted(a ^ b)[:5]}"] if a != b else []


def required(found: re.Match[str], new: str) -> str:
    """A requirement of one of ours as a release has it; the core's extras name each other without a version."""
    name, extras = found[1], found[2] or ""
    return found[0] if name == "oprack" and extras else f'"{name}{extras}~={new}"'


def set_version(new: str) -> None:
    """Write a version wherever it is written: each project's, what it asks of the others, and in the files of `STATED`.

    Args:
        new: The version, such as "0.2.0".

    Raises:
        SystemExit: It is none, or one of the files does not state the present version.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", new):
        raise SystemExit(f"version is {new!r}; expected three numbers, as in 0.2.0 or 0.2.0rc1")
    old = version()
    for folder in projects().values():
        file = folder / "pyproject.toml"
        text = file.read_text(encoding="utf-8")
        text = text.replace(f'\nversion = "{old}"\n', f'\nversion = "{new}"\n')
        file.write_text(REQUIREMENT.sub(lambda found: required(found, new), text), encoding="utf-8")
    for name, before in STATED.items():
        file = ROOT / name
        stated = re.compile(rf"({before}){re.escape(old)}(?![\w.])", re.MULTILINE)
        text, count = stated.subn(lambda found: found[1] + new, file.read_text(encoding="utf-8"))
        if not count:
            raise SystemExit(f"{name} does not say {old} after {before!r}; correct the table STATED in {__file__}")
        file.write_text(text, encoding="utf-8")


def section(wanted: str) -> str:
    """The section of CHANGELOG.md for a version.

    Args:
        wanted: The version.

    Returns:
        Its lines, without the heading.

    Raises:
        SystemExit: There is none, or nothing in it.
    """
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(wanted)}(?![\w.])[^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md has no section '## {wanted}'; write what is new there before a release")
    return found[1].strip() + "\n"


def notes(wanted: str) -> str:
    """What the page of a release says: the summary with which its section of CHANGELOG.md begins.

    Args:
        wanted: The version.

    Returns:
        The lines before the first subheading, and where the rest is: as a link in a workflow of GitHub.

    Raises:
        SystemExit: There is no section, no summary, or one of more than 15 lines.
    """
    summary = re.split(r"^### ", section(wanted), maxsplit=1, flags=re.MULTILINE)[0].strip()
    lines = len(summary.splitlines())
    if not 1 <= lines <= SUMMARY_LINES:
        raise SystemExit(
            f"CHANGELOG.md: section {wanted} begins with a summary of {lines} lines; expected 1 to {SUMMARY_LINES} "
            "before its first '### ', for people who decide whether to upgrade"
        )
    where = os.environ.get("GITHUB_REPOSITORY")
    file = f"{os.environ.get('GITHUB_SERVER_URL')}/{where}/blob/v{wanted}/CHANGELOG.md" if where else "CHANGELOG.md"
    return f"{summary}\n\nAll changes: {file}\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("target", type=Path)
    commands.add_parser("version").add_argument("version", nargs="?", help="default: print the present one")
    commands.add_parser("notes").add_argument("version")
    commands.add_parser("names")
    args = parser.parse_args()
    if args.command == "build":
        build(args.target.resolve())
    elif args.command == "version":
        set_version(args.version) if args.version else print(version())
    elif args.command == "notes":
        print(notes(args.version), end="")
    else:
        print(*projects(), sep="\n")


if __name__ == "__main__":
    main()
