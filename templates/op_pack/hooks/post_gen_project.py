"""Keeps the chosen licence and says what to do next; writes only inside the new folder."""

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
