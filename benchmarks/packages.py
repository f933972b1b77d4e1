"""Packages for benchmarks and tests alone: each list in a folder of its own under `.bench`, without dependencies."""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / ".bench"


def install(name: str, requirements: Path) -> Path:
    """The folder with the packages of a list with hashes in it, installed once for each state of the list."""
    folder = HOME / name
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "installed"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes; two that install at once would mix files
        if not stamp.exists() or stamp.read_text() != wanted:
            print(f"installing packages into {HOME.name}/{name}", file=sys.stderr)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
            # Most of it is never imported, so it is not compiled in advance.
            subprocess.run([*pip, "--upgrade", "--no-compile", "--target", folder, "-r", requirements], check=True)
            stamp.write_text(wanted)
    return folder
