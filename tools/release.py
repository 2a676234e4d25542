"""The two ends of `make release VERSION=0.2.0`; between them stands `make release-dry-run`. Neither pushes anything.

python tools/release.py prepare 0.2.0       look whether it may begin, write the version, and date the changelog
python tools/release.py tag 0.2.0           commit and tag what was tried, and say what to push
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess

import distributions

# what people write into until a release; "0.2.0 (unreleased)" says the number that is meant so far
PENDING = re.compile(r"^## (?:Unreleased|[^\n]*\(unreleased\))[ ]*$", re.MULTILINE | re.IGNORECASE)


def git(*words: str) -> str:
    """What a command of git prints."""
    done = subprocess.run(["git", *words], cwd=distributions.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def date_changelog(version: str, day: datetime.date) -> None:
    """Give the section of changes that are not released a version and a date.

    Args:
        version: The version.
        day: The date.

    Raises:
        SystemExit: There is no such section, or the version has a section already.
    """
    file = distributions.ROOT / "CHANGELOG.md"
    text = file.read_text(encoding="utf-8")
    pending = PENDING.findall(text)
    if len(pending) != 1:
        raise SystemExit(
            f"CHANGELOG.md has {len(pending)} sections of changes that are not released; expected one, "
            "'## Unreleased' or '## 0.2.0 (unreleased)'"
        )
    text = PENDING.sub(f"## {version} ({day.isoformat()})", text)
    if len(re.findall(rf"^## {re.escape(version)} ", text, re.MULTILINE)) > 1:
        raise SystemExit(f"CHANGELOG.md has a section '## {version}' already; a version is released once")
    file.write_text(text, encoding="utf-8")


def prepare(version: str) -> None:
    """Write the version and the date, if everything is committed and the version is new.

    Args:
        version: The version.

    Raises:
        SystemExit: Something is not committed, the tag is there, or the changelog is not ready.
    """
    if changed := git("status", "--porcelain"):
        raise SystemExit(
            f"a release is what is committed, but git says of this checkout:\n{changed}\n"
            "commit that; after a release that failed, `git restore .` takes back what it wrote"
        )
    if git("tag", "--list", f"v{version}"):
        raise SystemExit(f"the tag v{version} is there; a version is released once, so take the next number")
    try:
        date_changelog(version, datetime.datetime.now(datetime.UTC).date())
        distributions.notes(version)
        distributions.set_version(version)
    except SystemExit:
        git("restore", ".")  # all that is not committed is what was written here
        raise


def tag(version: str) -> None:
    """Commit what `prepare` wrote, tag it, and say what is to be pushed.

    Args:
        version: The version.
    """
    git("commit", "--all", "--message", f"Release {version}")
    git("tag", "--annotate", f"v{version}", "--message", f"oprack {version}")
    branch = git("rev-parse", "--abbrev-ref", "HEAD")
    print(
        f"Tagged v{version}; nothing was pushed. What is left:\n\n"
        "    git show --stat                             # look at it once more\n"
        f"    git push --atomic origin {branch} v{version}\n\n"
        "The tag starts the workflow release, which checks everything again and uploads. To take all back instead:\n\n"
        f"    git tag -d v{version} && git reset --hard HEAD~1"
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["prepare", "tag"])
    parser.add_argument("version")
    args = parser.parse_args()
    {"prepare": prepare, "tag": tag}[args.step](args.version)


if __name__ == "__main__":
    main()
