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
if "{{ cookiecutter.native }}" == "C":
    package, workflows = pathlib.Path("src", "{{ cookiecutter.__import_name }}"), pathlib.Path(".github", "workflows")
    folders = {"native.py": package, "native.c": package, "publish.yml": workflows, "test.yml": workflows}
    for path in native.iterdir():
        path.replace(folders.get(path.name, pathlib.Path()) / path.name)
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
