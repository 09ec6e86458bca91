# SPDX-License-Identifier: MIT
"""The command sluice-info, if the wheel contains it: see sluice-info(1)."""
from __future__ import annotations

import os
import sys
from pathlib import Path

from ._library import library_path

FOLDER = Path(__file__).parent / "lib"


def environment(given: dict[str, str]) -> dict[str, str]:
    """Returns the environment in which the program loads the same library as this package."""
    found = dict(given)
    folders = [str(FOLDER), given.get("LD_LIBRARY_PATH", "")]
    found["LD_LIBRARY_PATH"] = ":".join(each for each in folders if each)
    # A library in another folder, or with another name, stands in for the one that the program
    # needs.
    if Path(library_path).parent != FOLDER and "/" in library_path:
        preloads = [os.path.abspath(library_path), given.get("LD_PRELOAD", "")]
        found["LD_PRELOAD"] = ":".join(each for each in preloads if each)
    return found


def main() -> None:
    """Becomes the program."""
    program = FOLDER / "sluice-info"
    if not program.exists():
        sys.exit(
            f"sluice-info: {program} is not there: this package was built without it. "
            "That of the system, if there is one, is of the library of the system"
        )
    os.execve(program, ["sluice-info", *sys.argv[1:]], environment(dict(os.environ)))
