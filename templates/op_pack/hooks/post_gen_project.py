"""Keeps what was chosen and says what to do next; writes only inside the new folder."""

import pathlib
import shlex
import shutil

# pip compiles what it installs, and so the template, in which no compiled file is meant
for path in list(pathlib.Path.cwd().rglob("__pycache__")):
    shutil.rmtree(path)

LICENCE = "{{ cookiecutter.licence }}"
for path in pathlib.Path("licences").iterdir():
    if path.stem == LICENCE:
        path.replace("LICENSE")
    else:
        path.unlink()
pathlib.Path("licences").rmdir()

# What a pack with C has besides, or in place of the same for one without
native = pathlib.Path("native")
# Its wheels are one for each platform, and it is tested on each: (lines of the workflow, what stands in their place)
WORKFLOWS = {
    "publish.yml": [("      - run: python -m build --no-isolation\n", "      - run: python hatch_build.py dist\n")],
    "test.yml": [
        ("    runs-on: ubuntu-latest\n", "    runs-on: ${{ '{{' }} matrix.os {{ '}}' }}\n"),
        (
            '        python-version: ["3.11", "3.12", "3.13"]\n',
            "        os: [ubuntu-latest, ubuntu-24.04-arm, macos-latest, windows-latest]\n"
            '        python-version: ["3.11", "3.13"]\n',
        ),
    ],
}
if "{{ cookiecutter.native }}" == "C":
    package = pathlib.Path("src", "{{ cookiecutter.__import_name }}")
    folders = {"native.py": package, "native.c": package}
    for path in native.iterdir():
        path.replace(folders.get(path.name, pathlib.Path()) / path.name)
    for name, changes in WORKFLOWS.items():
        workflow = pathlib.Path(".github", "workflows", name)
        text = workflow.read_text("utf-8")
        for before, after in changes:
            if before not in text:
                raise SystemExit(f"{workflow} of the template has no line {before.strip()!r}")
            text = text.replace(before, after)
        workflow.write_text(text, "utf-8")
shutil.rmtree(native)

print(
    """{{ cookiecutter.__dist_name }} is ready:
  cd """
    + shlex.quote(str(pathlib.Path.cwd()))
    + """
  pip install -e '.[test]'      the pack, in place: oprack finds it by itself
  oprack op {{ cookiecutter.first_op }}
  pytest                        its tests: kernels, conformance, gradients
  oprack manifest .             after you add or rename ops: writes ops.toml
  oprack check .                before you publish: a review, with the remedy of each finding"""
)
