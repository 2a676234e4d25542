"""python -m oprack_paddle [--force] SCRIPT [ARGUMENTS]: run a script with `import paddle` served by oprack."""

from __future__ import annotations

import sys

from oprack_paddle.serving import run_script


def main(argv: list[str]) -> int:
    """Run the script of a command line."""
    force = argv[:1] == ["--force"]
    rest = argv[1:] if force else argv
    if not rest or rest[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if rest else 2
    run_script(rest, force)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
