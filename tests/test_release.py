"""The tools that make a release: versions, notes, what is looked for in a wheel, and the workflows that call them."""

from __future__ import annotations

import datetime
import importlib.util
import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import distributions
import pytest
import release
import try_release
import yaml
from oprack import default_manager
from oprack.cli.main import COMMANDS, pack_commands
from oprack.op import param_name

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
OF_PACKS = sorted(ROOT.glob("templates/op_pack/*/.github/workflows/*.yml"))
METADATA = "Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{rest}"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of this repository that a release reads and writes."""
    files = [ROOT / "CHANGELOG.md", *(ROOT / name for name in distributions.STATED), *ROOT.glob("*/pyproject.toml")]
    for file in (*files, *ROOT.glob("*/*/pyproject.toml")):
        target = tmp_path / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    monkeypatch.setattr(distributions, "ROOT", tmp_path)
    return tmp_path


def test_a_version_is_written_everywhere(copy: Path) -> None:
    old = distributions.version()
    distributions.set_version("7.8.9rc1")
    text = "".join(f.read_text("utf-8") for f in (*copy.rglob("pyproject.toml"), *copy.rglob("__init__.py")))
    assert f'"{old}"' not in text and f"~={old}" not in text
    assert text.count('\nversion = "7.8.9rc1"\n') == len(distributions.projects())
    for name in distributions.STATED:
        stated = (copy / name).read_text("utf-8")
        assert "7.8.9rc1" in stated and old not in stated
    assert '__version__ = "7.8.9rc1"' in text and text.count("~=7.8.9rc1") > len(distributions.projects())
    extras = tomllib.loads((copy / "core" / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert "oprack-cuda[cuda12,cudnn12]~=7.8.9rc1" in extras["cuda12"]
    with pytest.raises(SystemExit, match=r"version is 'next'; expected three numbers"):
        distributions.set_version("next")


def test_nothing_else_states_the_version() -> None:
    """A file that says which oprack it means, and is forgotten by a release, means the one before from then on."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    version = re.escape(distributions.version())
    stated = rf'oprack(-[a-z-]+)?(:| +|: |==){version}|[vV]ersion(__)?(: | = )"?{version}'
    found = subprocess.run(["git", "grep", "-lIE", stated], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # packs and pages of their own, which have versions of their own
    others = re.compile(r"(examples|templates)/|docs/how_to/|tests/test_one_op.py|.*/pyproject.toml")
    assert {name for name in found.split() if not others.match(name)} == set(distributions.STATED)


SECTIONS = "# Changelog\n\n## 0.2.0 (2030-01-01)\n\nNew.\n\n### Added\n- a\n\n## 0.1.0\n\n- b\n\n## 0.0.1\n"


def test_notes_are_the_summary_of_the_changelog(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    (copy / "CHANGELOG.md").write_text(SECTIONS)
    assert distributions.notes("0.2.0") == "New.\n\nAll changes: CHANGELOG.md\n"
    assert distributions.section("0.2.0") == "New.\n\n### Added\n- a\n" and distributions.section("0.1.0") == "- b\n"
    for absent in ("0.0.1", "0.3.0", "0.2"):
        with pytest.raises(SystemExit, match=rf"has no section '## {absent}'"):
            distributions.notes(absent)
    monkeypatch.setenv("GITHUB_REPOSITORY", "a/b")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    assert distributions.notes("0.1.0").endswith("\nAll changes: https://example.org/a/b/blob/v0.1.0/CHANGELOG.md\n")


@pytest.mark.parametrize(("summary", "lines"), [("", 0), ("- a\n" * 16, 16)])
def test_a_summary_is_there_and_short(copy: Path, summary: str, lines: int) -> None:
    (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## 0.2.0\n\n{summary}\n### Added\n- a\n")
    with pytest.raises(SystemExit, match=rf"0\.2\.0 begins with a summary of {lines} lines; expected 1 to 15"):
        distributions.notes("0.2.0")


def test_the_present_section_has_a_summary() -> None:
    assert distributions.notes(distributions.version())


@pytest.fixture
def checkout(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as a checkout of git with everything committed."""
    for name, value in {"NAME": "a", "EMAIL": "a@example.org"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (copy / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\nNew.\n\n### Added\n- a\n\n## 0.0.1\n\n- b\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "all"]):
        release.git(*command)
    return copy


def test_a_release_is_a_commit_and_a_tag_that_nobody_pushed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release.prepare("7.8.9")
    today = datetime.datetime.now(datetime.UTC).date()
    assert f"\n## 7.8.9 ({today})\n\nNew.\n" in (checkout / "CHANGELOG.md").read_text()
    assert distributions.version() == "7.8.9"
    release.tag("7.8.9")
    assert release.git("log", "-1", "--format=%s", "v7.8.9") == "Release 7.8.9" and not release.git("status", "-s")
    printed = capsys.readouterr().out
    assert "git push --atomic origin main v7.8.9" in printed
    (back,) = re.findall(r"git tag -d .*", printed)
    subprocess.run(back, shell=True, cwd=checkout, check=True)
    assert distributions.version() != "7.8.9" and release.git("tag") == ""


def test_a_release_that_can_not_begin_changes_nothing(checkout: Path) -> None:
    changelog = checkout / "CHANGELOG.md"
    text = changelog.read_text()
    refused = {
        "next": (text, r"version is 'next'"),
        "7.8.9": (text.replace("## Unreleased", "## 7.0.0 (2030-01-01)"), r"has 0 sections .* expected one"),
        "7.9.0": (text.replace("## Unreleased", "## 8.0 (Unreleased)\n\n## 7.9.0 (unreleased)"), "has 2 sections"),
        "0.0.1": (text.replace("0.0.1", "0.0.1 (2020-01-01)"), r"has a section '## 0\.0\.1' already"),
        "8.0.0": (text.replace("New.\n", ""), "summary of 0 lines"),
    }
    for version, (changed, problem) in refused.items():
        changelog.write_text(changed)
        release.git("commit", "--allow-empty", "-qam", version)
        with pytest.raises(SystemExit, match=problem):
            release.prepare(version)
        assert release.git("status", "--porcelain") == ""
    release.git("tag", "v9.0.0")
    with pytest.raises(SystemExit, match=r"the tag v9\.0\.0 is there"):
        release.prepare("9.0.0")
    changelog.write_text(text + "\n")
    with pytest.raises(SystemExit, match=r"git says of this checkout:\s+M CHANGELOG\.md"):
        release.prepare("9.9.9")


def test_the_stubs_of_a_release_are_those_of_its_packs(tmp_path: Path) -> None:
    """From the sources alone: nothing has to be installed, and what else is installed does not count."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "stubs" / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    folder = hook.write_stubs(ROOT, tmp_path)
    assert (folder / "py.typed").read_text("utf-8") == "partial\n"
    defined = set(
        re.findall(r"^def (\w+)\(", (folder / "functional" / "__init__.pyi").read_text("utf-8"), re.MULTILINE)
    )
    packs = [p for p in default_manager().packs() if (ROOT / "op_packages" / p.name).is_dir()]
    assert len(packs) > 10 and {param_name(op) for p in packs for op in p.op_types} <= defined
    assert not any(name.startswith("cuda_") for name in defined)


def wheel(
    folder: Path, name: str, *, files: dict[str, bytes], requires: tuple[str, ...] = (), tag: str = "any"
) -> Path:
    path, version = folder / f"{name}-{distributions.version()}-py3-none-{tag}.whl", distributions.version()
    rest = "".join(f"Requires-Dist: {r}\n" for r in requires)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.dist-info/METADATA", METADATA.format(name=name, version=version, rest=rest))
        for file, content in files.items():
            archive.writestr(file, content)
    return path


LICENCES = {f"a.dist-info/licenses/{name}": b"" for name in ("LICENSE", "NOTICE")}
WHOLE = {"a/__init__.py": b"", "a/py.typed": b"", **LICENCES}


@pytest.mark.parametrize(
    ("files", "tag", "problem"),
    [
        (WHOLE, "any", ""),
        ({k: v for k, v in WHOLE.items() if "NOTICE" not in k}, "any", r"has \['LICENSE'\] of LICENSE and NOTICE"),
        ({k: v for k, v in WHOLE.items() if "typed" not in k}, "any", r"has no py.typed in \['a'\]"),
        ({**WHOLE, "oprack/a.py": b""}, "any", ""),
        ({**WHOLE, "a/lib.so.1": b"\x7fELF\0GLIBC_2.14\0"}, "manylinux_2_17_x86_64", ""),
        ({**WHOLE, "a/lib.so.1": b"\x7fELF\0GLIBC_2.34\0"}, "manylinux_2_17_x86_64", r"needs glibc \(2, 34\)"),
        ({**WHOLE, "a/lib.so.1": b"\x7fELF"}, "any", r"native code \['a/lib.so.1'\]"),
    ],
)
def test_a_wheel_is_looked_into(tmp_path: Path, files: dict[str, bytes], tag: str, problem: str) -> None:
    found = distributions.look_into(wheel(tmp_path, "a", files=files, tag=tag))
    assert len(found) == bool(problem) and (not problem or re.search(problem, found[0]))


def test_no_file_belongs_to_two_distributions(tmp_path: Path) -> None:
    """Of one distribution there may be several wheels; of two, the one installed last would overwrite the other's."""
    wheel(tmp_path, "a", files={"oprack/a.py": b""}, tag="any")
    wheel(tmp_path, "a", files={"oprack/a.py": b""}, tag="manylinux_2_17_x86_64")
    assert distributions.shared_files(tmp_path) == []
    wheel(tmp_path, "b", files={"oprack/a.py": b""}, tag="any")
    (problem,) = distributions.shared_files(tmp_path)
    assert problem.endswith("oprack/a.py is also a file of a")


def test_nothing_compiled_is_in_the_repository() -> None:
    """Libraries are built where they are installed; one that was committed would be in every wheel and sdist."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [file for name in listed.split("\0") if name and (file := ROOT / name).is_file()]
    assert len(files) > 100 and [f.name for f in files if f.read_bytes().startswith((b"\x7fELF", b"!<arch>"))] == []


def test_what_others_bring_is_known_from_the_wheels(tmp_path: Path) -> None:
    """Own distributions are followed by their extras; markers decide, and nothing is asked for that no extra wants."""
    asked = ("numpy>=2", 'oprack[packs]; extra == "cpu"', 'oprack-b[c]; extra == "packs"', 'pytest; extra == "test"')
    wheel(tmp_path, "oprack", files={}, requires=asked)
    more = ('x>1; extra == "c"', 'y; extra == "d"', 'z; sys_platform == "nowhere"', "oprack~=0.1")
    wheel(tmp_path, "oprack_b", files={}, requires=more)
    assert try_release.others(tmp_path, []) == ["numpy>=2"]
    assert try_release.others(tmp_path, ["cpu"]) == ["numpy>=2", "x>1"]


def commands(workflow: dict[str, Any]) -> list[str]:
    """What the steps of a workflow run, those with a word of a matrix once for each."""
    found = []
    for job in workflow["jobs"].values():
        rows = [{}, *({key: row} for key, of in job.get("strategy", {}).get("matrix", {}).items() for row in of)]
        for text in (step["run"] for step in job.get("steps", ()) if "run" in step):
            filled = [
                re.sub(r"\$\{\{ matrix\.([\w-]+) \}\}", lambda m, r=row: str(r.get(m[1], m[0])), text) for row in rows
            ]
            found += dict.fromkeys(filled)
    return found


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_call_what_there_is(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))
    jobs = workflow["jobs"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for job in jobs.values():
        assert set([job["needs"]] if "needs" in job else []) <= jobs.keys()
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
    for command in commands(workflow):
        assert all((ROOT / script).is_file() for script in re.findall(r"\b(?:tools/\S+\.py|\.ci/run)\b", command))
        assert set(re.findall(r"\bmake (?:--silent )?([a-z-]+)", command)) <= targets
        modules = re.findall(r"python -m (oprack[\w.]*)", command)
        assert all(importlib.util.find_spec(module) for module in modules)
    assert workflow["permissions"] == {"contents": "read"}, "only the jobs that write may write"


def hashed(file: Path) -> dict[str, str]:
    """The versions of a file of requirements, each of which has a hash."""
    text = file.read_text("utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines and all("--hash=sha256:" in line for line in lines)
    return dict(re.match(r"([\w-]+)==(\S+)", line).groups() for line in lines)  # type: ignore[union-attr]


def test_what_builds_a_release_is_taken_by_its_hash() -> None:
    """`make build-requirements` writes both files; pip refuses a hashed file that lacks something."""
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    tools = hashed(ROOT / "tools" / "build-requirements.txt")
    assert tools.items() <= pinned.items(), "make build-requirements writes it anew"
    for folder in distributions.projects().values():
        needed = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
        assert {re.split(r"[^\w-]", r)[0].replace("_", "-") for r in needed} <= tools.keys(), folder
    (of_packs,) = ROOT.glob("templates/op_pack/*/build-requirements.txt")
    assert {"build", "hatchling"} <= hashed(of_packs).keys()
    for file in [ROOT / "Makefile", of_packs.parent / ".github" / "workflows" / "publish.yml"]:
        assert "--require-hashes --only-binary :all: -" in file.read_text("utf-8")


def test_the_night_is_bounded_and_its_seeds_are_new() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8"))
    assert all("permissions" not in job and job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())
    searches = workflow["jobs"]["fuzz"]["strategy"]["matrix"]["search"]
    for search in searches:
        assert "--seed" not in search, "a seed that is always the same finds nothing new"
        (seconds,) = re.findall(r"(?:SECONDS=|--seconds )(\d+)", search)
        assert int(seconds) <= 1800
    (keep,) = [step for step in workflow["jobs"]["fuzz"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert keep["if"] == "failure()" and keep["with"]["path"] == "out/fuzz/"  # where the fuzzer writes
    tables = [tomllib.loads(f.read_text("utf-8")) for f in ROOT.glob("tests/zoo/nets/*.toml")]
    (nets,) = re.findall(r'make zoo ARGS="(.*)"', "\n".join(commands(workflow)))
    assert tables and set(nets.split()) <= {name for table in tables for name in table}


def test_every_room_has_a_reviewer() -> None:
    lines = [line.split() for line in (ROOT / ".github/CODEOWNERS").read_text("utf-8").splitlines()]
    owners = {rule[0]: rule[1:] for rule in lines if rule and not rule[0].startswith("#")}
    assert all(names and all(re.fullmatch(r"@oprack/[a-z]+", n) for n in names) for names in owners.values())
    folders = {pattern for pattern in owners if pattern != "*"}
    assert all((ROOT / pattern.strip("/")).is_dir() for pattern in folders), "a line for a folder that is gone"
    rooms = {f"/{file.parent.relative_to(ROOT)}/" for file in ROOT.glob("plugins/*/pyproject.toml")}
    assert rooms <= folders, f".github/CODEOWNERS has no line for {sorted(rooms - folders)}"


FORMS = sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml"))


def test_forms_ask_what_can_be_answered() -> None:
    """GitHub shows no form at all that has an error, and says so to nobody who reads an issue."""
    forms = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in FORMS}
    assert set(forms.pop("config")) <= {"blank_issues_enabled", "contact_links"} and forms
    for form in forms.values():
        assert set(form) <= {"name", "description", "labels", "body", "title"} and form["name"] and form["description"]
        asked = [part for part in form["body"] if part["type"] != "markdown"]
        names = [part["id"] for part in asked]
        assert names and len(names) == len(set(names))
        for part in form["body"]:
            assert part["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
            assert part["attributes"]["value" if part["type"] == "markdown" else "label"]
            options = part["attributes"].get("options", [])
            assert bool(options) == (part["type"] in ("dropdown", "checkboxes"))
        assert len({part["attributes"]["label"] for part in asked}) == len(asked)
    text = "".join(file.read_text("utf-8") for file in FORMS)
    known = {*COMMANDS, *pack_commands()}
    assert set(re.findall(r"`oprack ([a-z-]+)", text)) <= known


def test_actions_are_those_of_one_commit() -> None:
    """Whoever moves a tag or a branch of an action would else run in the job that may publish."""
    found: dict[str, set[str]] = {}
    for file in (*WORKFLOWS, *OF_PACKS):
        for action in re.findall(r"(?m)^\s*-? *uses: (.*)$", file.read_text("utf-8")):
            if not action.startswith("./"):
                name, commit = re.fullmatch(r"([\w./-]+)@([0-9a-f]{40})  # v[\d.]+", action).groups()
                found.setdefault(name, set()).add(commit)
    assert len(found) == 5 and all(len(commits) == 1 for commits in found.values()), found


def test_a_release_is_uploaded_without_a_password_after_all_tests() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and "environment" in jobs["publish"]
    assert jobs["publish"]["needs"] == "test" and jobs["test"]["uses"] == "./.github/workflows/test.yml"
    text = "".join(file.read_text("utf-8") for file in WORKFLOWS)
    assert "secrets." not in text and "password" not in re.sub(r"(?m)^#.*$", "", text)
