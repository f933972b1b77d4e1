"""How this program was started, so that commands which are printed work as printed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

NAME = "journeyman"


def program(*, folder: Path | None = None) -> str:
    """What to type for this program: its name where the shell finds it by that, else its path, quoted.

    ``folder`` is where it will be typed, if that is not the current one.
    """
    started = Path(sys.argv[0])
    if started.name != NAME or not started.is_file():
        return NAME  # inside another program, whose users know how to start this one
    found = shutil.which(NAME)
    if found is not None and os.path.samefile(found, started):
        return NAME
    path, here = started.absolute(), Path.cwd() if folder is None else folder.absolute()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
