"""oprack new-pack [DIRECTORY] [--pack-name NAME ...] [--no-input]"""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path

from oprack.cli.main import OK

_ANSWERS = ("pack_name", "description", "author", "email", "first_op", "places", "native", "licence")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", default=".", help="where the pack's folder is made (default: here)")
    questions = json.loads((template_directory() / "cookiecutter.json").read_text(encoding="utf-8"))
    for name in _ANSWERS:
        choices = questions[name] if isinstance(questions[name], list) else None
        help_ = questions["__prompts__"][name] + (f": {' or '.join(map(repr, choices))}" if choices else "")
        parser.add_argument("--" + name.replace("_", "-"), metavar="ANSWER", choices=choices, help=help_)
    parser.add_argument("--no-input", action="store_true", help="ask nothing: take the defaults for what is not given")
    parser.set_defaults(run=run)


def template_directory() -> Path:
    """The cookiecutter template: inside the installed package, or at the top of a checkout.

    Raises NotFoundError when neither is there.
    """
    from oprack.errors import NotFoundError

    package = Path(__file__).resolve().parent
    for candidate in (package / "templates" / "op_pack", package.parents[3] / "templates" / "op_pack"):
        if (candidate / "cookiecutter.json").is_file():
            return candidate
    raise NotFoundError(f"the template op_pack is not beside {package}; reinstall oprack-testing")


def run(args: argparse.Namespace) -> int:
    from oprack.errors import InvalidArgumentError, PreconditionNotMetError

    try:
        from cookiecutter.exceptions import CookiecutterException, FailedHookException, OutputDirExistsException
        from cookiecutter.main import cookiecutter
    except ImportError as error:
        raise PreconditionNotMetError(
            "new-pack needs cookiecutter; install it with `pip install 'oprack[templates]'`"
        ) from error
    if Path(args.directory).exists() and not Path(args.directory).is_dir():
        raise InvalidArgumentError(f"{args.directory!r} is a file; expected a directory for the pack's folder")
    # a refused answer is told by the hook and by us; cookiecutter would log a traceback between the two
    logging.getLogger("cookiecutter").addHandler(logging.NullHandler())
    logging.getLogger("cookiecutter").propagate = False
    given = {name: value for name in _ANSWERS if (value := getattr(args, name)) is not None}
    for name, value in given.items():
        # cookiecutter renders answers as templates, which can run commands, before the hook sees them
        if any(sign in value for sign in ("{{", "{%", "{#")):
            raise InvalidArgumentError(
                f"--{name.replace('_', '-')} {value!r} has signs of a template; expected text without {{{{, {{% and {{#"
            )
    try:
        folder = cookiecutter(
            str(template_directory()), no_input=args.no_input, extra_context=given, output_dir=args.directory
        )
    except FailedHookException:
        raise InvalidArgumentError("an answer was refused, for the reason above; nothing was written") from None
    except OutputDirExistsException as error:
        raise InvalidArgumentError(f"{error}; choose another pack name or directory") from None
    except EOFError:
        options = " ".join("--" + name.replace("_", "-") for name in _ANSWERS)
        raise InvalidArgumentError(
            "the input ended before all questions were answered; nothing was written. Answers may also be given as "
            f"{options}, with --no-input for the rest"
        ) from None
    except (CookiecutterException, ValueError) as error:
        raise InvalidArgumentError(f"{type(error).__name__}: {error}") from None
    print(folder)
    return OK
