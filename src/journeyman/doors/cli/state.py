"""Files that the command line keeps for its user between starts; nobody else can read them."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def state_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    # A relative folder is to be ignored, says the specification.
    root = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return root / "journeyman"


def replace_file(place: Path, content: bytes) -> None:
    """Put a file in place whole, with mode 0600: two programs at once leave one of the two, never a torn file."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, written = tempfile.mkstemp(dir=place.parent, prefix=place.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(written, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(written)
        raise
